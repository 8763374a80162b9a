-- True for a compressor: one of tidemark's controls, or a published row with a compressor's name.
-- Parameter: model, its name.
create or replace macro is_compressor(model) as
    starts_with(model, 'control:')
    or lower(model) in (
        'gzip', 'zlib', 'deflate', 'bzip2', 'bz2', 'xz', 'lzma', 'lzma2', 'zstd', 'brotli', 'ppmd',
        '7z', 'png', 'flac', 'webp', 'paq8', 'cmix'
    );
