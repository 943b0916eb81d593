#include "syncer/source.h"
#include "syncer/sqlite_source.h"

namespace fingerpost {

Result<std::unique_ptr<Source>> open_source(const std::string& url) {
  Result<std::string> path = sqlite_path_of_url(url);
  if (!path) return path.status();
  return std::unique_ptr<Source>(std::make_unique<SqliteSource>(*std::move(path)));
}

}  // namespace fingerpost
