/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gate.h"
#include "agent/folder.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct silt_script script; /* one for all: sent before the next is begun */

void silt_gates_init(struct silt_gates *g)
{
    *g = (struct silt_gates){.list = {{.file = -1, .open = -1}, {.file = -1, .open = -1}}};
}

void silt_gates_fini(struct silt_gates *g)
{
    for (int i = 0; i < 2; i++) {
        silt_close_fd(&g->list[i].file);
        silt_close_fd(&g->list[i].open);
    }
}

static void name_of(unsigned slot, enum silt_shell_file kind, unsigned turn,
                    char out[SILT_FOLDER_NAME_SIZE])
{
    silt_shell_name(slot, kind, out);
    out[strlen(out) - 1] = (char)(out[strlen(out) - 1] + (char)turn);
}

/* What is behind the lines are empty ones. */
static int write_page(const struct silt_gate *g, struct silt_script *s, struct silt_error *e)
{
    memset(s->text + s->len, '\n', sizeof(s->text) - s->len);
    if (pwrite(g->file, s->text, sizeof(s->text), 0) != (ssize_t)sizeof(s->text))
        return silt_fail_errno(e, "write to the shell's input");
    return 0;
}

static void shrink(struct silt_gate *g)
{
    if (g->large && ftruncate(g->file, SILT_SCRIPT_INLINE) == 0)
        g->large = false;
}

static int open_file(void *arg)
{
    struct silt_gate *g = arg;
    g->large = true;
    return lseek(g->file, 0, SEEK_SET) == 0 ? g->file : -1;
}

struct silt_script *silt_gates_script(struct silt_gates *g)
{
    silt_script_init(&script, open_file, &g->list[g->turn]);
    return &script;
}

static int make_one(struct silt_gates *all, int folder, unsigned slot, unsigned turn,
                    struct silt_error *e)
{
    struct silt_gate *g = &all->list[turn];
    char name[SILT_FOLDER_NAME_SIZE];
    name_of(slot, SILT_SHELL_GATE, turn, name);
    if (silt_folder_make_fifo(folder, name, all->owner, e) < 0)
        return -1;
    name_of(slot, SILT_SHELL_IN, turn, name);
    if (silt_folder_create(folder, name, all->owner, &g->file, e) < 0)
        return -1;
    script.len = 0;
    return write_page(g, &script, e);
}

static int make_first(struct silt_gates *g, unsigned slot, int *ret_fd, struct silt_error *e)
{
    struct silt_script *s = silt_gates_script(g);
    struct silt_shell sh = {.slot = slot, .turn = g->turn};
    silt_auto_fd fd = memfd_create("silt", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create a memory file");
    silt_shell_begin(s, &sh);
    if (silt_fd_write_all(fd, (silt_slice){s->text, s->len}, e) < 0)
        return silt_because(e, "write the first line for a shell");
    if (lseek(fd, 0, SEEK_SET) < 0)
        return silt_fail_errno(e, "rewind the first line for a shell");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_gates_make(struct silt_gates *g, int folder, unsigned slot, struct silt_owner owner,
                    int *ret_first, struct silt_error *e)
{
    silt_gates_fini(g);
    silt_gates_init(g);
    g->owner = owner;
    for (unsigned i = 0; i < 2; i++)
        if (make_one(g, folder, slot, i, e) < 0)
            return -1;
    return make_first(g, slot, ret_first, e);
}

static int put_down(struct silt_gate *g, struct silt_script *s, struct silt_error *e)
{
    bool in_file = silt_script_flush(s);
    (void)silt_take_fd(&s->file); /* it is the gate's */
    if (!in_file && !s->broken)
        return write_page(g, s, e);
    if (!s->broken)
        return 0;
    shrink(g);
    return silt_fail(e, SILT_LIMIT, "no space for lines to the shell");
}

int silt_gates_send(struct silt_gates *g, struct silt_script *s, int folder, unsigned slot,
                    struct silt_error *e)
{
    char name[SILT_FOLDER_NAME_SIZE];
    struct silt_gate *gate = &g->list[g->turn];
    if (put_down(gate, s, e) < 0)
        return -1;
    name_of(slot, SILT_SHELL_GATE, g->turn, name);
    /* Both ways: then it is open also for a shell that comes later. */
    if (silt_folder_fifo_again(folder, name, O_RDWR, &gate->open, e) < 0)
        return -1;
    g->turn ^= 1;
    return 0;
}

bool silt_gates_are_open(const struct silt_gates *g)
{
    return g->list[0].open >= 0 || g->list[1].open >= 0;
}

void silt_gates_shut(struct silt_gates *g, int folder, unsigned slot)
{
    char name[SILT_FOLDER_NAME_SIZE];
    struct silt_error e;
    for (unsigned i = 0; i < 2; i++) {
        shrink(&g->list[i]);
        if (g->list[i].open < 0)
            continue;
        silt_close_fd(&g->list[i].open);
        name_of(slot, SILT_SHELL_GATE, i, name);
        (void)silt_folder_make_fifo(folder, name, g->owner, &e); /* without it the shell ends, and says so */
    }
}
