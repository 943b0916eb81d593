<?php
// usage: php -d ffi.enable=1 consumer.php LIBRARY SEGMENT QUESTIONS HEADER: the same as consumer.c, by PHP's FFI.
[, $library, $segment, $questions, $header] = $argv;

// The declarations of fingerpost.h, without comments and the preprocessor's lines.
$text = preg_replace('~/\*.*?\*/~s', '', file_get_contents($header));
$text = str_replace(['extern "C" {', "#ifdef __cplusplus\n}\n#endif"], '', $text);
$lib = FFI::cdef(preg_replace('~^#.*$~m', '', $text), $library);

$message = $lib->new('char[256]');
$handle = $lib->new('fingerpost_reader*');
if ($lib->fingerpost_open($segment, null, FFI::addr($handle), $message, 256) !== 0) {
    exit(FFI::string($message));
}
function text_of($view): string
{
    return $view->length === 0 ? '' : FFI::string($view->data, $view->length);
}
foreach (file($questions, FILE_IGNORE_NEW_LINES) as $line) {
    [$id, $object] = explode("\t", $line);
    $part = $object === '-' ? null : $object;
    $route = $lib->new('fingerpost_route');
    $waited = $lib->new('fingerpost_route');
    $shard = $lib->new('fingerpost_shard');
    $shard->struct_size = FFI::sizeof($shard);
    if ($part === null) {
        $lib->fingerpost_resolve($handle, $id, strlen($id), FFI::addr($route));
    } else {
        $lib->fingerpost_resolve_object($handle, $id, strlen($id), $part, strlen($part), FFI::addr($route));
    }
    $lib->fingerpost_route_shard(FFI::addr($route), FFI::addr($shard));
    $status = $lib->fingerpost_wait_writable(
        $handle, $id, strlen($id), $part, strlen($object), 0, FFI::addr($waited), $message, 256);
    echo implode("\t", [$id, $object, $route->answer, $route->source, $route->state, $route->epoch, $route->parts,
        $route->writable, text_of($shard->name), text_of($shard->primary), $lib->fingerpost_status_text($status)]), "\n";
}
$lib->fingerpost_close($handle);
