/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell/shell_input.h"
#include "agent/shell/dev_silt.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct silt_script script; /* shared: sent before the next one begins */

void silt_shell_inputs_init(struct silt_shell_inputs *g)
{
    *g = (struct silt_shell_inputs){.list = {{.file = -1, .open = -1}, {.file = -1, .open = -1}}};
}

void silt_shell_inputs_fini(struct silt_shell_inputs *g)
{
    for (int i = 0; i < 2; i++) {
        silt_close_fd(&g->list[i].file);
        silt_close_fd(&g->list[i].open);
    }
}

static void name_of(unsigned slot, enum silt_shell_file kind, unsigned turn,
                    char out[SILT_DEV_SILT_NAME_SIZE])
{
    silt_shell_name(slot, kind, out);
    out[strlen(out) - 1] = (char)(out[strlen(out) - 1] + (char)turn);
}

/* The rest of the page is filled with empty lines. */
static int write_page(const struct silt_shell_input *g, struct silt_script *s, struct silt_error *e)
{
    memset(s->text + s->len, '\n', sizeof(s->text) - s->len);
    if (pwrite(g->file, s->text, sizeof(s->text), 0) != (ssize_t)sizeof(s->text))
        return silt_fail_errno(e, "write to the shell's input");
    return 0;
}

static void shrink(struct silt_shell_input *g)
{
    if (g->large && ftruncate(g->file, SILT_SCRIPT_INLINE) == 0)
        g->large = false;
}

static int open_file(void *arg)
{
    struct silt_shell_input *g = arg;
    g->large = true;
    return lseek(g->file, 0, SEEK_SET) == 0 ? g->file : -1;
}

struct silt_script *silt_shell_inputs_script(struct silt_shell_inputs *g)
{
    silt_script_init(&script, open_file, &g->list[g->turn]);
    return &script;
}

static int make_one(struct silt_shell_inputs *all, int directory, unsigned slot, unsigned turn,
                    struct silt_error *e)
{
    struct silt_shell_input *g = &all->list[turn];
    char name[SILT_DEV_SILT_NAME_SIZE];
    name_of(slot, SILT_SHELL_GATE, turn, name);
    if (silt_dev_silt_make_fifo(directory, name, all->owner, e) < 0)
        return -1;
    name_of(slot, SILT_SHELL_IN, turn, name);
    if (silt_dev_silt_create(directory, name, all->owner, &g->file, e) < 0)
        return -1;
    script.len = 0;
    return write_page(g, &script, e);
}

static int make_first(struct silt_shell_inputs *g, unsigned slot, int *ret_fd, struct silt_error *e)
{
    struct silt_script *s = silt_shell_inputs_script(g);
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

int silt_shell_inputs_make(struct silt_shell_inputs *g, int directory, unsigned slot,
                           struct silt_owner owner, int *ret_first, struct silt_error *e)
{
    silt_shell_inputs_fini(g);
    silt_shell_inputs_init(g);
    g->owner = owner;
    for (unsigned i = 0; i < 2; i++)
        if (make_one(g, directory, slot, i, e) < 0)
            return -1;
    return make_first(g, slot, ret_first, e);
}

static int put_down(struct silt_shell_input *g, struct silt_script *s, struct silt_error *e)
{
    bool in_file = silt_script_flush(s);
    (void)silt_take_fd(&s->file); /* now the gate's */
    if (!in_file && !s->broken)
        return write_page(g, s, e);
    if (!s->broken)
        return 0;
    shrink(g);
    return silt_fail(e, SILT_LIMIT, "no space for lines to the shell");
}

int silt_shell_inputs_send(struct silt_shell_inputs *g, struct silt_script *s, int directory,
                           unsigned slot, struct silt_error *e)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    struct silt_shell_input *gate = &g->list[g->turn];
    if (put_down(gate, s, e) < 0)
        return -1;
    name_of(slot, SILT_SHELL_GATE, g->turn, name);
    /* Read-write: a shell that arrives later finds it open, too. */
    if (silt_dev_silt_fifo_again(directory, name, O_RDWR, &gate->open, e) < 0)
        return -1;
    g->turn ^= 1;
    return 0;
}

bool silt_shell_inputs_are_open(const struct silt_shell_inputs *g)
{
    return g->list[0].open >= 0 || g->list[1].open >= 0;
}

void silt_shell_inputs_shut(struct silt_shell_inputs *g, int directory, unsigned slot)
{
    char name[SILT_DEV_SILT_NAME_SIZE];
    struct silt_error e;
    for (unsigned i = 0; i < 2; i++) {
        shrink(&g->list[i]);
        if (g->list[i].open < 0)
            continue;
        silt_close_fd(&g->list[i].open);
        name_of(slot, SILT_SHELL_GATE, i, name);
        (void)silt_dev_silt_make_fifo(directory, name, g->owner,
                                      &e); /* on failure the shell exits and reports it */
    }
}
