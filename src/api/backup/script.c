/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts, run by bash -c without a session's state. Client input appears in them only in
 * quotes. */
#include "api/backup/request.h"
#include "api/core/quote.h"

static void set(struct silt_buf *b, const char *name, silt_slice value)
{
    silt_buf_addf(b, "%s=", name);
    silt_shell_quote(b, value);
    silt_buf_add_byte(b, '\n');
}

/* ---- create ---- */

/* mksquashfs does not support `**`. At the start, in the middle and at the end it is redundant,
 * because a pattern matches at any depth. Empty: nothing is left of the pattern. */
static silt_slice simplify(silt_slice p, struct silt_buf *b)
{
    while (silt_slice_starts(p, SILT_LIT("**/")))
        p = (silt_slice){p.data + 3, p.len - 3};
    silt_buf_clear(b);
    for (size_t i = 0; i < p.len; i++) {
        while (silt_slice_starts((silt_slice){p.data + i, p.len - i}, SILT_LIT("/**/")))
            i += 3;
        silt_buf_add_byte(b, p.data[i]);
    }
    silt_slice out = silt_buf_slice(b);
    if (out.len >= 3 && memcmp(out.data + out.len - 3, "/**", 3) == 0)
        out.len -= 3;
    return silt_slice_eq(out, SILT_LIT("**")) ? (silt_slice){NULL, 0} : out;
}

static void add_excludes(const struct silt_backup_request *q, struct silt_buf *b)
{
    silt_auto_buf plain;
    silt_buf_init(&plain, 64 << 10);
    for (const struct silt_json *i = q->excludes != NULL ? q->excludes->items.first : NULL;
         i != NULL; i = i->next) {
        silt_slice p = simplify(i->string, &plain);
        if (p.len == 0)
            continue;
        silt_buf_add(b, SILT_LIT("exclude "));
        silt_shell_quote(b, p);
        silt_buf_add_byte(b, '\n');
    }
}

/* Paths that git ignores are written literally, with wildcards escaped, so that each matches only
 * itself. */
static const char ignored[] =
    "if command -v git >/dev/null && [ \"$(git -c safe.directory='*' -C \"$dir\" rev-parse "
    "--is-inside-work-tree 2>/dev/null)\" = true ]; then\n"
    "  while IFS= read -r -d '' path; do\n"
    "    path=${path%/}\n"
    "    case $path in *$'\\n'* | '') continue ;; esac\n"
    "    path=${path//\\\\/\\\\\\\\} path=${path//\\*/\\\\*} path=${path//\\?/\\\\?} "
    "path=${path//\\[/\\\\[}\n"
    "    printf '%s\\n' \"$path\" >>\"$list\"\n"
    "  done < <(git -c safe.directory='*' -C \"$dir\" ls-files -z --others --ignored "
    "--exclude-standard --directory 2>/dev/null)\n"
    "fi\n";

/* The archive gets its name only when it is complete. Memory is limited explicitly: the programs
 * would size it by the machine, but the sandbox has less. */
static void add_create(const struct silt_backup_request *q, struct silt_buf *b)
{
    set(b, "dir", q->dir);
    silt_buf_addf(b,
                  "[ -d \"$dir\" ] || exit %d\n"
                  "command -v mksquashfs >/dev/null || exit %d\n"
                  "mkdir -p -- \"${archive%%/*}\" || exit 1\n"
                  "part=$(mktemp -- \"$archive.XXXXXX\") || exit 1\n"
                  "list=$part.excludes\n"
                  "trap 'rm -f -- \"$list\" \"$part\"' EXIT\n"
                  ": >\"$list\" || exit 1\n"
                  "exclude() {\n"
                  "  case $1 in '#'*) set -- \"\\\\$1\" ;; esac # else it is a comment\n"
                  "  printf '%%s\\n' \"$1\" >>\"$list\"\n"
                  "  case $1 in */*) ;; *) printf '... %%s\\n' \"$1\" >>\"$list\" ;; esac # with a "
                  "slash that leaves out too much\n"
                  "}\n",
                  SILT_BACKUP_ABSENT, SILT_BACKUP_NO_TOOL);
    add_excludes(q, b);
    if (q->gitignore)
        silt_buf_add(b, silt_slice_of(ignored));
    silt_buf_addf(b,
                  "mksquashfs \"$dir\" \"$part\" -comp %.*s -processors %u -mem 64M -no-progress "
                  "-noappend -wildcards -ef \"$list\" >/dev/null || exit\n",
                  (int)q->format.len, q->format.data, q->threads);
    silt_buf_add(b, SILT_LIT("stat -c %s -- \"$part\" && mv -fT -- \"$part\" \"$archive\"\n"));
}

/* ---- restore ---- */

/* Unpacks into a subdirectory of the target, so that all moves are renames. The target directory
 * itself stays, so that a shell or a watcher in it sees the new files; open files keep their old
 * content. If a move fails, all are moved back. The directory's mtime becomes the archive's, or
 * stays. */
static const char exchange[] =
    "mkdir -p -- \"$dir\" && cd -P -- \"$dir\" && time=$(stat -c %y .) && "
    "room=$(mktemp -d ./.silt-restore-XXXXXX) && "
    "mkdir -- \"$room/old\" || exit 1\n"
    "trap 'rm -rf -- \"$room\"; touch -d \"$time\" . 2>/dev/null' EXIT\n"
    "unsquashfs -no-progress -da 32 -fr 32 -d \"$room/new\" \"$archive\" >/dev/null || exit\n"
    "shopt -s dotglob nullglob\n"
    "move() { # FROM TO: all but the directory of ours\n"
    "  local name names=()\n"
    "  for name in \"$1\"/*; do [ \"$name\" = \"$room\" ] || names+=(\"$name\"); done\n"
    "  ((${#names[@]} == 0)) || printf '%s\\0' \"${names[@]}\" | xargs -0 mv -f -t \"$2\" --\n"
    "}\n"
    "new_time=$(stat -c %y -- \"$room/new\")\n"
    "if move . \"$room/old\"; then\n"
    "  if move \"$room/new\" .; then\n"
    "    chown --reference=\"$room/new\" . && chmod --reference=\"$room/new\" . || :\n"
    "    time=$new_time\n"
    "    exit 0\n"
    "  fi\n"
    "  move . \"$room/new\"\n"
    "fi\n"
    "move \"$room/old\" . || trap - EXIT # nothing is lost\n"
    "exit 1\n";

static void add_restore(const struct silt_backup_request *q, struct silt_buf *b)
{
    set(b, "dir", q->dir);
    silt_buf_addf(b,
                  "[ -f \"$archive\" ] || exit %d\ncommand -v unsquashfs >/dev/null || exit %d\n",
                  SILT_BACKUP_ABSENT, SILT_BACKUP_NO_TOOL);
    silt_buf_add(b, silt_slice_of(exchange));
}

/* ---- upload ---- */

/* A range comes through a pipe, so its Content-Length is set by hand: storage services reject
 * chunked bodies. Eight uploads at a time. */
static const char upload[] =
    "room=$(mktemp -d) || exit 1\n"
    "trap 'rm -rf -- \"$room\"' EXIT\n"
    "put() { # NAME OFFSET SIZE URL\n"
    "  local try line etag=\n"
    "  for try in 1 2 3; do\n"
    "    tail -c \"+$(($2 + 1))\" -- \"$archive\" | head -c \"$3\" |\n"
    "      curl -sSfg --http1.1 --proto =https --connect-timeout 10 --max-time 1800 -X PUT -T - -o "
    "/dev/null -D \"$room/head-$1\" \\\n"
    "        -H 'Content-Type: application/octet-stream' -H \"Content-Length: $3\" -H "
    "'Transfer-Encoding:' -H 'Expect:' --url \"$4\" && break\n"
    "    [ $try -lt 3 ] || return 1\n"
    "    sleep $try\n"
    "  done\n"
    "  while IFS= read -r line; do\n"
    "    case $line in [Ee][Tt][Aa][Gg]:*) etag=${line#*:} ;; esac\n"
    "  done <\"$room/head-$1\"\n"
    "  etag=${etag%$'\\r'} etag=${etag# }\n"
    "  [ -n \"$etag\" ] || { echo \"the answer to a part has no ETag\" >&2; return 1; }\n"
    "  printf '%s\\n' \"$etag\" >\"$room/etag-$1\"\n"
    "}\n"
    "offsets=() sizes=() urls=()\n"
    "part() { offsets+=(\"$1\") sizes+=(\"$2\") urls+=(\"$3\"); }\n"
    "lane() {\n"
    "  local i\n"
    "  for ((i = $1; i < ${#urls[@]}; i += 8)); do\n"
    "    [ ! -e \"$room/failed\" ] && put $i \"${offsets[i]}\" \"${sizes[i]}\" \"${urls[i]}\" || { "
    ": >\"$room/failed\"; return 1; }\n"
    "  done\n"
    "}\n";

static const char lanes[] =
    "pids=()\n"
    "for ((i = 0; i < 8; i++)); do lane $i & pids+=($!); done\n"
    "for pid in \"${pids[@]}\"; do wait $pid || : >\"$room/failed\"; done\n"
    "[ ! -e \"$room/failed\" ] || exit 1\n"
    "for ((i = 0; i < ${#urls[@]}; i++)); do cat -- \"$room/etag-$i\" || exit 1; done\n";

static void add_upload(const struct silt_backup_request *q, struct silt_buf *b)
{
    uint64_t end = 0;
    for (size_t i = 0; i < q->count; i++)
        end = q->parts[i].offset + q->parts[i].size > end ? q->parts[i].offset + q->parts[i].size
                                                          : end;
    silt_buf_addf(b,
                  "[ -f \"$archive\" ] || exit %d\n"
                  "command -v curl >/dev/null || exit %d\n"
                  "[ \"$(stat -c %%s -- \"$archive\")\" -ge %llu ] || exit %d\n",
                  SILT_BACKUP_ABSENT, SILT_BACKUP_NO_TOOL, (unsigned long long)end,
                  SILT_BACKUP_SHORT);
    silt_buf_add(b, silt_slice_of(upload));
    for (size_t i = 0; i < q->count; i++) {
        silt_buf_addf(b, "part %llu %llu ", (unsigned long long)q->parts[i].offset,
                      (unsigned long long)q->parts[i].size);
        silt_shell_quote(b, q->parts[i].url);
        silt_buf_add_byte(b, '\n');
    }
    silt_buf_add(b, silt_slice_of(lanes));
}

void silt_backup_script(const struct silt_backup_request *q, struct silt_buf *b)
{
    set(b, "archive", q->archive);
    if (q->kind == SILT_BACKUP_CREATE)
        add_create(q, b);
    else if (q->kind == SILT_BACKUP_RESTORE)
        add_restore(q, b);
    else
        add_upload(q, b);
}
