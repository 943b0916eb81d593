// Every kind of change that a writer makes, each as a scenario on the town
// (tests/writer_scenario.h).
#pragma once

#include "tests/writer_scenario.h"

namespace fingerpost {

inline Scenario insertion(const Town& town) {
  Scenario s = town.scenario("insertion of a short and a long id");
  s.phases = {batch(put_rows({{town.ben, active(2, 3)}, {town.long_ben, active(1, 3)}}), 3)};
  return s;
}

inline Scenario update_in_place(const Town& town) {
  Scenario s = town.scenario("update in place");
  s.phases = {batch(put_rows({{town.ann, active(2, 3)}, {town.gone, active(3, 3)}}), 3)};
  return s;
}

inline Scenario update_through_record(const Town& town) {
  Scenario s = town.scenario("updates to, between and from records");
  s.phases = {
      batch(put_rows({{town.ann, migrating(1, 3, 3)}, {town.moving, migrating(1, 3, 3)}}), 3),
      batch(put_rows({{town.ann, {State::frozen, 1, 3, 4}}, {town.moving, active(3, 4)}}), 4),
      batch(put_rows({{town.dan, migrating(2, 0, 5)}, {town.ann, active(3, 5)}}), 5)};
  return s;
}

inline Scenario removal(const Town& town) {
  Scenario s = town.scenario("removal");
  s.phases = {batch(remove_rows({{town.ann, 3}, {town.long_ann, 3}}), 3)};
  return s;
}

inline Scenario reuse(const Town& town) {
  Scenario s = town.scenario("reuse of a slot for a twin, twice");
  s.phases = {batch(remove_rows({{town.ann, 3}, {town.long_ann, 3}}), 3),
              batch(put_rows({{town.ben, active(2, 4)}, {town.long_ben, active(0, 4)}}), 4),
              batch(put_rows({{town.ben, active(3, 5)}, {town.long_ben, migrating(0, 2, 5)}}), 5),
              batch(remove_rows({{town.ben, 6}}), 6),
              batch(put_rows({{town.cat, migrating(2, 1, 7)}}), 7)};
  return s;
}

inline Scenario whole_batch(const Town& town) {
  Scenario s = town.scenario("a batch of overrides, buckets, removals and topology");
  Rows first;
  first.topology = Town::topology();
  first.topology->push_back(shard_named("s4", "h4:1"));
  first.overrides = {{town.ben, active(0, 3)}, {town.dan, active(4, 3)}};
  first.rules = {{town.bucket(), active(4, 3)}};
  first.removals = {{town.ann, 3}};
  Rows second;
  second.overrides = {{town.cat, active(4, 4)}};
  second.rules = {{town.bucket(), migrating(4, 1, 4)}, {1 - town.bucket(), active(2, 4)}};
  second.removals = {{town.ben, 4}, {town.long_ann, 4}};
  s.phases = {batch(first, 3), batch(second, 4)};
  return s;
}

inline Scenario older_rows(const Town& town) {
  Scenario s = town.scenario("rows and removals older than what is served");
  Rows rows =
      put_rows({{town.ann, active(3, 2)}, {town.dan, active(3, 1)}, {town.moving, active(3, 1)}});
  rows.rules = {{town.bucket(), active(3, 1)}};
  rows.removals = {{town.gone, 1}, {town.cat, 1}};
  s.phases = {batch(rows, 3)};
  return s;
}

inline Scenario growth(const Town& town) {
  Scenario s = town.scenario("growth with changes between its slices");
  Rows meanwhile = put_rows({{town.ben, active(2, 3)}, {town.dan, active(3, 3)}});
  meanwhile.rules = {{town.bucket(), active(2, 3)}};
  meanwhile.removals = {{town.ann, 3}};
  s.phases = {phase_of(Phase::Kind::begin_copy, 2),
              batch(meanwhile, 3),
              phase_of(Phase::Kind::step_copy),
              batch(put_rows({{town.cat, active(1, 4)}, {town.long_ann, active(0, 4)}}), 4),
              phase_of(Phase::Kind::switch_over),
              batch(put_rows({{town.ann, active(3, 5)}}), 5)};
  return s;
}

inline Scenario reload(const Town& town) {
  Scenario s = town.scenario("a reload that removals and newer rows overtake");
  // Read at version 3; meanwhile version 4 removes ann and version 5 changes dan.
  Truth loaded = s.before;
  loaded.overrides[town.ben] = active(3, 3);
  loaded.rules[town.bucket()] = active(3, 3);
  Phase begin = phase_of(Phase::Kind::begin_load, 3);
  begin.needs = {20, 64, FallbackKind::buckets, 2};
  Phase load = phase_of(Phase::Kind::load);
  load.rows = rows_of(loaded);
  Phase turn = phase_of(Phase::Kind::switch_over);
  turn.becomes = loaded;
  turn.becomes->apply(remove_rows({{town.ann, 4}}));
  turn.becomes->apply(put_rows({{town.dan, active(0, 5)}}));
  turn.becomes->position = {1, 5, 1'005, 0};
  Phase publish = batch({}, 5);
  s.phases = {begin,
              batch(remove_rows({{town.ann, 4}}), 4),
              batch(put_rows({{town.dan, active(0, 5)}}), 5),
              load,
              turn,
              publish};
  return s;
}

inline Scenario new_history(const Town& town) {
  Scenario s = town.scenario("another history of the directory");
  Truth next;
  next.kind = FallbackKind::buckets;
  next.rules = {active(2, 1), active(3, 1)};
  next.overrides = {{town.ann, active(0, 1)}, {town.cat, migrating(0, 1, 1)}};
  Phase begin = phase_of(Phase::Kind::begin_load, 5);
  begin.needs = {4, 64, FallbackKind::buckets, 2};
  begin.incarnation = 2;
  Phase load = phase_of(Phase::Kind::load);
  load.rows = rows_of(next);
  Phase hidden;
  hidden.hidden = true;
  hidden.rows = put_rows({{town.ben, active(1, 2)}});
  hidden.rows.removals = {{town.dan, 2}, {town.ann, 2}};
  next.apply(hidden.rows);
  Phase turn = phase_of(Phase::Kind::switch_over);
  turn.becomes = next;
  turn.becomes->position = s.before.position;  // the new one follows in the next store of its own
  Phase publish;
  publish.rows.position = Position{2, 2, 5, 0};
  s.phases = {begin, load, hidden, turn, publish};
  return s;
}

inline Scenario topology_change(const Town& town) {
  Scenario s = town.scenario("a topology with a changed, a new and a removed shard");
  Rows rows = put_rows({{town.ann, active(4, 3)}, {town.ben, active(5, 3)}});
  rows.topology = {shard_named("s0", "h0:1"), shard_named("s1", "h9:9"), shard_named("s3", "h3:1"),
                   shard_named("s4", "h4:1"), shard_named("s5", "h5:1")};
  Rows back;
  back.topology = Town::topology();
  s.phases = {batch(rows, 3), batch(back, 4)};
  return s;
}

// A tenant split in place, a part on its way, grown so that parts inherit, and merged; another one,
// with a long id, split out of its bucket by the twin's bytes alone, and gone back to it.
inline Scenario split_and_merge(const Town& town) {
  Scenario s = town.scenario("a split, a part moved, growth, a merge, a removal");
  s.ids = {town.ann,           object_of(town.ann, "o1"), object_of(town.ann, "o2"),
           parts_of(town.ann), object_of(town.dan, "o1"), parts_of(town.long_ben)};
  const SplitFields two{4, 4, {active(1, 3), active(1, 4)}};
  const SplitFields moved{5, 5, {active(1, 3), migrating(1, 2, 5)}};
  const SplitFields four{7, 7, {active(1, 3), migrating(1, 2, 5), active(1, 6), active(2, 7)}};
  s.phases = {batch(split_rows({{town.ann, two}}), 4),
              batch(split_rows({{town.ann, moved}, {town.long_ben, two}}), 5),
              batch(split_rows({{town.ann, four}}), 7),
              batch(put_rows({{town.ann, active(2, 8)}}), 8),
              batch(remove_rows({{town.long_ben, 9}}), 9)};
  return s;
}

// The record in both halves: copied, and met there by younger ones and by older readings, among
// them one of more parts, and rows from before and after a split.
inline Scenario split_in_two_generations(const Town& town) {
  Scenario s = town.scenario("splits through a growth, and a reload that newer changes overtake");
  s.ids = {parts_of(town.ann),    object_of(town.dan, "o1"), parts_of(town.cat),
           parts_of(town.moving), parts_of(town.long_ann),   parts_of(town.gone)};
  const SplitFields old{3, 3, {active(1, 2), active(2, 3)}};
  const SplitFields younger{5, 5, {active(1, 2), active(3, 5)}};
  const SplitFields read{6, 6, {active(1, 2), active(3, 5), active(1, 6), active(3, 6)}};
  const SplitFields last{7, 7, {active(1, 2), active(0, 7)}};
  for (const std::string& id : {town.ann, town.moving, town.long_ann}) s.before.overrides.erase(id);
  s.before.splits = {{town.ann, old}, {town.cat, old}, {town.moving, old}, {town.long_ann, old}};
  s.before.position = {1, 3, 77, 0};
  Truth loaded = s.before;
  loaded.overrides.erase(town.dan);
  loaded.overrides[town.gone] = active(1, 5);
  loaded.splits = {{town.ann, read}, {town.dan, read}, {town.moving, old}, {town.long_ann, read}};
  Phase begin = phase_of(Phase::Kind::begin_load, 3);
  begin.needs = {20, 64, FallbackKind::buckets, 2};
  Phase load = phase_of(Phase::Kind::load);
  load.rows = rows_of(loaded);
  Rows meanwhile =
      split_rows({{town.ann, last}, {town.gone, {3, 7, {active(2, 3), active(1, 3)}}}});
  meanwhile.overrides = {{town.dan, active(2, 7)}};
  meanwhile.removals = {{town.long_ann, 7}};
  Phase turn = phase_of(Phase::Kind::switch_over);
  turn.becomes = loaded;
  turn.becomes->apply(meanwhile);
  turn.becomes->position = {1, 7, 1'007, 0};
  s.phases = {phase_of(Phase::Kind::begin_copy, 2),
              batch(split_rows({{town.ann, younger}}), 5),
              phase_of(Phase::Kind::step_copy),
              batch(remove_rows({{town.cat, 6}}), 6),
              phase_of(Phase::Kind::switch_over),
              begin,
              batch(meanwhile, 7),
              load,
              turn};
  return s;
}

inline Scenario superseding(const Town& town) {
  Scenario s = town.scenario("superseding");
  s.phases = {batch(put_rows({{town.ann, active(2, 3)}}), 3), phase_of(Phase::Kind::supersede)};
  return s;
}

// Two groups; the first is so full that entries which belong there lie in the second.
struct Crowd {
  std::vector<std::string> ids;  // twenty at home in group 0; `alike`: of one fingerprint
  std::string late;              // the same, not there at first

  explicit Crowd(bool alike) {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i <= 20; ++i) {
      std::string id;
      for (;; ++at) {
        id = "crowd-" + std::to_string(100'000 + at);
        const std::uint64_t hash = index_hash(id, kFirstSeed);
        const bool is_five = (hash >> 4 & 0x7F) == 5;
        if (home_of(hash, 2).group == 0 && (is_five == alike)) break;
      }
      ++at;
      if (i < 20)
        ids.push_back(id);
      else
        late = id;
    }
  }

  Scenario scenario(const std::string& name, std::size_t count) const {
    Scenario s;
    s.name = name;
    s.needs = {20, 64, FallbackKind::none, 0};
    s.topology = Town::topology();
    s.before.position = {1, 2, 77, 0};
    for (std::size_t i = 0; i < count; ++i) {
      s.before.overrides[ids[i]] = active(static_cast<std::uint16_t>(i % 4), 2);
    }
    return s;
  }
};

inline Scenario overflow(const Crowd& crowd) {
  Scenario s = crowd.scenario("insertion beyond the home group", 16);
  s.phases = {batch(put_rows({{crowd.ids[16], active(1, 3)}}), 3)};
  s.ids = {crowd.ids[0], crowd.ids[15], crowd.ids[16], crowd.late};
  return s;
}

inline Scenario gap_in_chain(const Crowd& crowd) {
  Scenario s = crowd.scenario("removal in front of an entry of the same chain, and reuse", 18);
  s.phases = {batch(remove_rows({{crowd.ids[2], 3}, {crowd.ids[17], 3}}), 3),
              batch(put_rows({{crowd.late, active(3, 4)}}), 4)};
  s.ids = {crowd.ids[2], crowd.ids[3], crowd.ids[16], crowd.ids[17], crowd.late};
  return s;
}

// Both halves used twice, each time with other sizes, another seed and another fallback: whoever
// mixes two generations of one half is told nonsense. Slots of the same twins in each.
inline Scenario four_generations(const Town& town) {
  Scenario s = town.scenario("four generations of other shapes, a slot reused in each");
  Truth truth = s.before;
  std::uint64_t version = 2;
  const auto add_batch = [&](const Rows& rows) {
    s.phases.push_back(batch(rows, ++version));
    truth.apply(s.phases.back().rows);
  };
  const auto add_reload = [&](TableNeeds needs, std::uint64_t seed, FallbackKind kind,
                              std::vector<RouteFields> rules) {
    truth.kind = needs.fallback_kind = kind;
    truth.rules = std::move(rules);
    needs.fallback_count = truth.rules.size();
    Phase begin = phase_of(Phase::Kind::begin_load, seed);
    begin.needs = needs;
    Phase load = phase_of(Phase::Kind::load);
    load.rows = rows_of(truth);
    Phase turn = phase_of(Phase::Kind::switch_over);
    turn.becomes = truth;
    s.phases.insert(s.phases.end(), {begin, load, turn});
  };
  add_batch(remove_rows({{town.ann, 3}}));
  add_batch(put_rows({{town.ben, active(2, 4)}}));
  add_reload({30, 64}, 9, FallbackKind::hash, {active(3, 5), active(2, 5), active(1, 5)});
  add_batch(remove_rows({{town.ben, 6}, {town.dan, 6}}));
  add_batch(put_rows({{town.cat, migrating(3, 0, 7)}}));
  add_reload({8, 200}, kFirstSeed, FallbackKind::buckets, {active(2, 8), active(3, 8)});
  add_batch(put_rows({{town.dan, active(0, 9)}, {town.ann, active(0, 9)}}));
  add_reload({20, 64}, kFirstSeed, FallbackKind::none, {});
  add_batch(remove_rows({{town.ann, 11}}));
  return s;
}

// The first shape again in the first half: sequences begin again at the same slots.
inline Scenario clean_up_twice(const Town& town) {
  Scenario s = town.scenario("two clean-ups, twins in one slot before, between and after");
  s.phases = {batch(remove_rows({{town.ann, 3}}), 3),
              batch(put_rows({{town.ben, active(2, 4)}}), 4),
              phase_of(Phase::Kind::begin_copy, kFirstSeed),
              phase_of(Phase::Kind::step_copy),
              phase_of(Phase::Kind::switch_over),
              batch(remove_rows({{town.ben, 5}}), 5),
              batch(put_rows({{town.cat, active(3, 6)}}), 6),
              phase_of(Phase::Kind::begin_copy, kFirstSeed),
              phase_of(Phase::Kind::step_copy),
              phase_of(Phase::Kind::switch_over),
              batch(remove_rows({{town.cat, 7}}), 7),
              batch(put_rows({{town.ann, active(0, 8)}}), 8)};
  return s;
}

// Two shapes that fit into a half, and whose mixture does not: many slots, then many records.
inline Scenario shapes_that_fit_apart(const Town& town) {
  Scenario s = town.scenario("a half used for many slots, then for many records");
  s.needs = {40, 64, FallbackKind::buckets, 2};
  s.ids = {town.ann, town.moving};
  for (const TableNeeds& needs : {TableNeeds{8, 64, FallbackKind::buckets, 2},
                                  TableNeeds{8, 1'100, FallbackKind::buckets, 2}}) {
    Phase begin = phase_of(Phase::Kind::begin_load, kFirstSeed);
    begin.needs = needs;
    Phase load = phase_of(Phase::Kind::load);
    load.rows = rows_of(s.before);
    s.phases.insert(s.phases.end(), {begin, load, phase_of(Phase::Kind::switch_over)});
  }
  return s;
}

inline Scenario crowded_clean_ups(const Crowd& crowd) {
  Scenario s = crowd.scenario("two clean-ups of a chain of two groups", 17);
  for (int i = 0; i < 2; ++i) {
    s.phases.insert(s.phases.end(),
                    {phase_of(Phase::Kind::begin_copy, kFirstSeed),
                     phase_of(Phase::Kind::step_copy), phase_of(Phase::Kind::switch_over)});
  }
  s.phases.push_back(batch(remove_rows({{crowd.ids[16], 3}}), 3));
  s.ids = {crowd.ids[16]};
  return s;
}

inline std::vector<Scenario> all_scenarios() {
  const Town town;
  const Crowd crowd(true);
  const Crowd motley(false);
  return {insertion(town),
          update_in_place(town),
          update_through_record(town),
          removal(town),
          reuse(town),
          whole_batch(town),
          older_rows(town),
          growth(town),
          reload(town),
          new_history(town),
          topology_change(town),
          split_and_merge(town),
          split_in_two_generations(town),
          overflow(crowd),
          gap_in_chain(crowd),
          four_generations(town),
          clean_up_twice(town),
          shapes_that_fit_apart(town),
          crowded_clean_ups(motley)};
}

}  // namespace fingerpost
