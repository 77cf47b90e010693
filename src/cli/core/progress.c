/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/progress.h"
#include "base/clock.h"
#include "cli/core/cli.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum {
    QUIET_US = 1000 * 1000, /* a shorter transfer needs no bar */
    PAINT_US = 100 * 1000,
    WIDTH = 80, /* if the terminal does not report it */
    BAR_MIN = 4,
    BAR_MAX = 30,
    NAME_MIN = 8,
    TIME_TEXT = 24,
    SIDE_TEXT = 96,
};

static const char *write_time(double seconds, char out[TIME_TEXT])
{
    unsigned s = seconds < 359999 ? (unsigned)(seconds + 0.5) : 359999; /* 99:59:59 */
    if (s >= 3600)
        (void)snprintf(out, TIME_TEXT, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(out, TIME_TEXT, "%u:%02u", s / 60, s % 60);
    return out;
}

/* The text right of the bar: amount, speed, time. */
static void write_side(const struct silt_progress *p, int64_t now_us, char out[SIDE_TEXT])
{
    char amount[SILT_CLI_SIZE_TEXT], time[TIME_TEXT];
    double seconds = (double)(now_us - p->start_us) / 1e6;
    double speed = seconds > 0 ? (double)p->done / seconds : 0;
    bool left = p->total > p->done && speed > 0;
    double rest = left ? (double)(p->total - p->done) / speed : seconds;
    (void)snprintf(out, SIDE_TEXT, "%10s  %6.1f MiB/s  %s %-6s",
                   silt_cli_size((int64_t)p->done, amount), speed / (1 << 20),
                   write_time(rest, time), left ? "left" : "in all");
}

static void write_bar(char out[BAR_MAX + 5], size_t cells, double share)
{
    size_t full = (size_t)((double)cells * share);
    char *at = out + snprintf(out, BAR_MAX + 5, "  [");
    for (size_t i = 0; i < cells; i++)
        *at++ = i < full ? '#' : '.';
    *at++ = ']';
    *at = 0;
}

/* The name and the bar share the columns that the numbers leave; a bar of too few columns is
 * omitted. */
static size_t share_room(size_t room, size_t wanted, size_t *ret_cells)
{
    size_t bar = BAR_MIN + strlen("  []");
    size_t name = wanted + bar <= room ? wanted : room > NAME_MIN + bar ? room - bar : room;
    name = name < wanted ? name : wanted;
    size_t cells = room - name >= bar ? room - name - strlen("  []") : 0;
    *ret_cells = cells < BAR_MAX ? cells : BAR_MAX;
    return name;
}

void silt_progress_line(const struct silt_progress *p, int64_t now_us, size_t width,
                        char out[SILT_PROGRESS_LINE_SIZE])
{
    char side[SIDE_TEXT], bar[BAR_MAX + 5] = "", percent[16] = "";
    size_t cells, room, fixed;
    double share = p->total == 0 ? 0 : (double)p->done / (double)p->total;
    share = share < 1 ? share : 1;
    write_side(p, now_us, side);
    width = width < SILT_PROGRESS_LINE_SIZE ? width : SILT_PROGRESS_LINE_SIZE - 1;
    fixed = strlen(side) + strlen("  100 %  ");
    room = width > fixed ? width - fixed : 0;
    int name = (int)share_room(room, strlen(p->name), &cells);
    if (p->total > 0)
        (void)snprintf(percent, sizeof(percent), "  %3d %%", (int)(share * 100));
    if (p->total > 0 && cells > 0)
        write_bar(bar, cells, share);
    (void)snprintf(out, width + 1, "%.*s%s%s  %s", name, p->name, percent, bar, side);
}

static size_t columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col - 1u : WIDTH - 1u;
}

static void paint(struct silt_progress *p, int64_t now_us)
{
    char line[SILT_PROGRESS_LINE_SIZE];
    silt_progress_line(p, now_us, columns(), line);
    (void)fprintf(stderr, "\r%s\033[K", line);
    (void)fflush(stderr);
    p->painted_us = now_us;
    p->shown = true;
}

/* A name may come from a sandbox: control characters must not reach the terminal. */
void silt_progress_start(struct silt_progress *p, const char *name, uint64_t total)
{
    *p = (struct silt_progress){
        .total = total, .start_us = silt_clock_us(), .live = isatty(STDERR_FILENO) == 1};
    (void)snprintf(p->name, sizeof(p->name), "%s", name);
    for (char *c = p->name; *c != 0; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

void silt_progress_tell(const struct silt_progress *p, const char *what)
{
    if (!p->live)
        return;
    if (what != NULL)
        (void)fprintf(stderr, "\r%s: %s\033[K", p->name, what);
    else
        (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}

void silt_progress_add(struct silt_progress *p, uint64_t bytes)
{
    p->done += bytes;
    if (!p->live)
        return;
    int64_t now_us = silt_clock_us();
    if (now_us - p->start_us >= QUIET_US && now_us - p->painted_us >= PAINT_US)
        paint(p, now_us);
}

void silt_progress_end(struct silt_progress *p)
{
    if (!p->shown)
        return;
    paint(p, silt_clock_us());
    (void)fputc('\n', stderr);
    p->shown = false;
}
