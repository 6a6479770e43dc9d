/* Shared by the group*.c files: the table of groups under construction, the queue of proposals, the matchers of whole groups. */
#ifndef FUSION_GROUP_PRIVATE_H
#define FUSION_GROUP_PRIVATE_H
#include "fusion/contract_set.h"
#include "fusion/steer.h"

/* Of a group: a bit for each value that it reads and stores, some values sharing one; their bytes. */
typedef struct group_ports {
  uint64_t reads, stores;
  double bytes;
} group_ports;
/* A decision + 1, and its edge mixed, so that another's is seldom looked at. */
typedef struct group_known {
  uint32_t decision, mixed;
} group_known;
typedef struct group_spare group_spare; /* a list that is free */
/* Where a group lies: deeper (greater) than the groups that it reads; and the mark of the walk that has reached it. */
typedef struct group_place {
  uint32_t level, mark;
} group_place;
/* Whether a node must have a buffer: an output, an update, what is kept, what a group that cannot inline it reads; APART: and no kernel that makes it reads it. */
enum { GROUP_INLINE, GROUP_STORED, GROUP_STORED_APART };
typedef struct grouping {
  fusion_context *c;
  ir_uses uses;
  IR_VEC(uint32_t) reads; /* of the union at hand */
  IR_VEC(uint32_t) stack; /* of groups: of the walk at hand */
  uint32_t *group_of;     /* = c->group_of */
  uint8_t *storage;       /* per node: GROUP_INLINE .. */
  uint8_t *kinds;         /* per node: group_kind_of_node */
  uint8_t *needed;        /* nodes that an output or update needs */
  uint8_t *recomputed;    /* members of every group that reads them: never an output */
  uint32_t mark;          /* the newest mark of each of the two lists */
  uint32_t *inside;       /* per node: member of the union at hand */
  uint32_t *tried;        /* per node: seen by the search at hand */
  group_known *known;     /* open addressing */
  uint32_t known_size, turn;
  group_place *place; /* per group */
  group_ports *ports;
  ir_arena scratch; /* unions that are only looked at: each lives until the next is made */
  ir_arena_mark empty;
  group_spare *spare[32]; /* by size */
} grouping;

/* Is that many nanoseconds less a reason for one kernel? */
static inline bool group_pays(const grouping *s, double saving) { return saving > s->c->options->profile->least_saving; }

/* ---- hyper-edges: a whole group proposed at once (fusion/group/hyper.c) ---- */

enum { HYPER_MAX_NODES = 48 };
/* What a matcher found: compute nodes (not views) whose groups would become one kernel, in any order. */
typedef struct hyper_match {
  uint32_t count, nodes[HYPER_MAX_NODES];
  uint32_t hero; /* the node that shapes the iteration; 0: the largest of the kind */
} hyper_match;
/* `match` is called for every live node of operator `anchor`; it looks at the graph only, not at the groups. */
typedef struct hyper_matcher {
  const char *name;
  uint16_t anchor;
  uint8_t kind; /* of the kernel */
  bool (*match)(grouping *, uint32_t node, hyper_match *out);
} hyper_matcher;
extern const hyper_matcher hyper_matchers[];
extern const uint32_t hyper_matcher_count;
bool hyper_add(hyper_match *, uint32_t node); /* once; false when full */
bool match_attention(grouping *, uint32_t node, hyper_match *);
bool match_gated_contraction(grouping *, uint32_t node, hyper_match *);
bool match_sibling_contractions(grouping *, uint32_t node, hyper_match *);

typedef struct hyper_edge {
  const hyper_matcher *matcher;
  uint32_t count, hero;
  const uint32_t *nodes;
} hyper_edge;

/* ---- the queue ---- */

static inline uint32_t group_mix(uint32_t producer, uint32_t consumer) {
  return (uint32_t)((((uint64_t)producer << 32 | consumer) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}
/* Where a table of `size` (a power of two) is looked in for an edge: first in a few places near those of edges near it in the graph, then anywhere. */
typedef struct group_probe {
  uint32_t at, mask, near, far; /* how many near places there are; where it goes on behind them */
} group_probe;
static inline group_probe group_probe_first(const grouping *s, uint32_t size, uint32_t mixed, uint32_t consumer) {
  enum { WINDOW = 1024, NEAR_PLACES = 8 };
  const uint32_t near = (uint32_t)((uint64_t)consumer * size / s->c->graph->nodes.count) + (mixed & (WINDOW - 1)), mask = size - 1;
  return (group_probe){near & mask & ~(NEAR_PLACES - 1u), mask, NEAR_PLACES, mixed & mask};
}
static inline void group_probe_next(group_probe *p) { p->at = --p->near ? (p->at + 1) & p->mask : p->far; }

typedef struct edge {
  double saving, rank;                  /* rank: in the queue */
  uint32_t producer, consumer, version; /* node numbers; version: sum of the groups' versions when priced */
  uint32_t hyper;                       /* 1 + number of a hyper-edge; 0: a pair */
  uint32_t proposal;                    /* of a pair: which word about its groups this is */
  bool guessed;                         /* the saving: by launches and bytes */
  bool recompute;                       /* the producer is computed again in all its readers */
} edge;
typedef struct edge_queue {
  IR_VEC(edge); /* a heap */
  double step;  /* by which savings that are told apart differ */
} edge_queue;
/* The last word about two groups. */
typedef struct group_pair {
  uint32_t producer, consumer, version; /* 1 + numbers of groups; the sum of their versions when they were looked at */
  uint32_t proposal;                    /* the one edge of the queue that stands for them; 0: refused */
} group_pair;
typedef struct pair_table {
  group_pair *at;
  uint32_t size, count;
} pair_table;
typedef struct group_run {
  edge_queue queue;
  uint32_t *version;      /* per group: raised when it changes */
  uint32_t *met, meeting; /* per group: the last look around that found it */
  pair_table pairs;
  bool cones;               /* flat loops are put together without a price */
  bool many;                /* groups: block by block, what is said of them is kept */
  uint32_t first, end;      /* the groups that may meet: the block at hand */
  uint32_t matched;         /* nodes that hyper-edges have been looked for at */
  uint32_t proposals, gone; /* gone: 1 + the group that the one at hand has just taken in, its prices kept; 0: all are made again */
  IR_VEC(hyper_edge) hypers;
  grouping s;
} group_run;

/* Up to so many groups everything is priced again whenever a part has changed, in one queue. */
enum { GROUP_MANY = 4096, GROUP_BLOCK = 2048, GROUP_LEVEL_STEP = 16 };
/* Levels of a block lie above those of the blocks before it, with room to sink. */
static inline uint32_t group_first_level(uint32_t group) { return group / GROUP_BLOCK * 2 * GROUP_BLOCK * GROUP_LEVEL_STEP; }
static inline bool group_in_block(const group_run *r, uint32_t group) { return group >= r->first && group < r->end; }

bool group_push(fusion_context *, edge_queue *, edge);
/* A pair, by a node of each, into the queue when it saves. */
void group_consider(group_run *, uint32_t producer, uint32_t consumer);
void group_consider_neighbours(group_run *, uint32_t group);
/* Groups have changed: what is said of them and those around them is looked at again. */
void group_refresh(group_run *, const uint32_t *groups, uint32_t count);
/* Takes the best until nothing saves. */
void group_run_queue(group_run *);
snt_result group_run_blocks(group_run *); /* fusion/group/blocks.c */
/* Fills order and order_count; the levels of all groups anew (fusion/group/order.c). */
snt_result group_find_order(group_run *);
snt_result group_find_levels(group_run *);
/* The word about two groups, by their numbers: null when there is none, or (make) when memory runs out. It lives until the next is made. */
group_pair *group_pair_find(const group_run *, uint32_t producer, uint32_t consumer);
group_pair *group_pair_make(group_run *, uint32_t producer, uint32_t consumer);
uint32_t group_number(const group_run *, uint32_t node);
/* A contract that forbids one kernel of these groups: a word for the decision record, or null. */
const char *group_forbidden(const group_run *, const uint32_t *groups, uint32_t count);
/* Replaces the groups by `fused`, which takes the number of the last. */
void group_take(group_run *, const uint32_t *groups, uint32_t count, const fusion_group *fused);
/* Finds the hyper-edges up to the end of the block at hand and puts those that save into the queue; again all there are. */
void hyper_propose(group_run *);
void hyper_propose_across(group_run *);
/* A hyper-edge at the head of the queue: taken (returns 1 + its group), or priced again, or refused. */
uint32_t hyper_pop(group_run *, const edge *);

/* ---- rematerialisation (fusion/group/remat.c) ---- */

enum { REMAT_MAX_CHANGED = 17 };
/* Prices computing a stored value again in its readers, into the queue when it saves. Of many groups it is taken at once; returns how many it changed. */
uint32_t remat_consider(group_run *, uint32_t value, uint32_t *changed);
/* Such a choice at the head of the queue; returns how many groups it changed. */
uint32_t remat_pop(group_run *, const edge *, uint32_t *changed);

/* ---- the beginning, where groups are many (fusion/group/cones.c) ---- */

/* Per node the root of its cone, with a record a node that is none; null where the user asks something of nodes. False when memory runs out. */
bool group_find_cones(grouping *, uint32_t **roots);
/* In the block at hand small flat loops join the first of their readers. */
bool group_join_first_readers(group_run *);

/* ---- what the user asks for (fusion/group/must.c) ---- */

/* Before anything is priced: the nodes of each must_fuse become one group where a kind of kernel holds them. */
void must_take(group_run *);

/* ---- what cannot be bound (fusion/group/fit.c) ---- */

/* Stores views that join more buffers than their readers could bind; false when memory runs out. */
bool group_store_wide_views(grouping *);
/* Stores concatenations that contractions would look through dearly, by the profile. */
void group_store_dear_views(grouping *);

/* ---- unions ---- */

uint32_t group_least_bindings(const grouping *, uint32_t a, uint32_t b); /* of one kernel of both, from their ports alone */
/* Builds the union of two groups: members, inputs, outputs, kind, hero. False with the reason when it cannot be one kernel. */
bool group_join_loops(grouping *, uint32_t a, uint32_t b, fusion_group *out);
bool group_unite(grouping *, uint32_t a, uint32_t b, fusion_group *out, const char **why_not);
bool group_look(grouping *, uint32_t a, uint32_t b, fusion_group *out, const char **why_not);
/* The ports of the union and what it would save, by launches and bytes; whether it is a kernel group_look says. */
bool group_guess(grouping *, uint32_t a, uint32_t b, fusion_group *out, const char **why_not, double *saving);
/* The same of several, as a kernel of `kind` around `hero` (0: the largest of the kind). */
bool group_unite_all(grouping *, const uint32_t *groups, uint32_t count, group_kind kind, uint32_t hero, fusion_group *out,
                     const char **why_not);
/* Beyond this a kernel gains nothing and its pricing costs: keeps the whole near linear in the graph. */
enum { GROUP_MOST_MEMBERS = 192 };
/* A group with the members of another beside its own, of the kind that both make. */
bool group_extend(grouping *, const fusion_group *, const fusion_group *with, fusion_group *out, const char **why_not);
/* Ports, hero and legality of a group whose members and kind are set. */
bool group_finish(grouping *, fusion_group *, const char **why_not);
/* Fills inputs and outputs of a group whose members are set. */
bool group_find_ports(grouping *, fusion_group *);
/* Group `number` is `made` from now on: the lists move to the arena of the compile. Those of what was there before are dropped, and then serve others. */
bool group_settle(grouping *, uint32_t number, const fusion_group *made);
void group_drop(grouping *, const fusion_group *settled);
group_kind group_find_kind(const grouping *, uint32_t node);
static inline group_kind group_kind_of_node(const grouping *s, uint32_t node) { return (group_kind)s->kinds[node]; }
group_kind group_merged_kind(group_kind producer, group_kind consumer); /* GROUP_NONE: never one kernel */
void group_price(grouping *, fusion_group *);
bool group_shares_launch(const group_run *, uint32_t value, uint32_t reader); /* with another reader of the value */
double group_contract_depth(const fusion_context *, uint32_t node);           /* terms of each result, at the hints */
enum { GROUP_MOST_INPUTS = 64 };
/* Of a kernel of kind `row`: how often each member is computed and each input read. False: not of that kind, or too large to say. */
bool group_count_sweeps(const fusion_context *, const fusion_group *, uint8_t *times, uint8_t *input_times);
uint32_t group_last_axis(const ir_tensor *);                /* of several elements, or the first, + 1; 0: there is none */
bool group_reduces_rows(const ir_graph *, uint32_t reduce); /* is the last axis of several elements among those that go? */
/* Loads of single lanes, and what of them touches: a line each. */
typedef struct lane_loads {
  double count, lines, lined_bytes; /* lined_bytes: of the values that these lie in */
} lane_loads;
/* How each member varies along the vectors of a flat loop or of rows: FUSION_BESIDE .. */
lane_loads group_find_lanes(const fusion_context *, const fusion_group *, const uint8_t *sweeps, uint8_t *lanes);
/* Where reads go through texels: for how many elements of a concatenation each member is computed; returns the loads that this takes. */
double group_find_joined(const fusion_context *, const fusion_group *, const uint8_t *sweeps, double *joined);
/* What decides where a node reads the value below its operand: a view, that value itself, or the node, where it gathers. */
uint32_t group_map_read(const ir_graph *, const fusion_facts *, uint32_t node, uint32_t operand);
/* How often each member is computed for being read at several places and, unless `reach` is null, for how many results. False: none is, and it is not asked. */
bool group_count_maps(const fusion_context *, const fusion_group *, double *times, double *reach);
enum { GROUP_FEW_MOVED = 7 };
bool group_writes_too_often(const fusion_context *, const fusion_group *); /* a kernel of more than those few */
/* ---- rows that are walked down columns (fusion/group/down.c) ---- */

typedef struct group_down {
  double apart, full; /* bytes between terms, 0: nothing is walked so; elements of what is */
  uint32_t arrays;    /* of full size, as they are met */
  bool stored;        /* one of them is an output */
} group_down;
group_down group_find_down(const fusion_context *, const fusion_group *);
float group_stores_down(const fusion_context *, const fusion_group *, uint32_t output, group_down *); /* cost_stream.strided */
double group_waits_down(const fusion_context *, const fusion_group *, const group_down *);            /* cost_work.waited */
/* ---- operands of contractions (fusion/group/panels.c) ---- */

/* Is the input on its way into a contraction (an operand or a prologue of one), rather than read by the epilogue? Depth: 0. */
bool group_feeds_contraction(const fusion_context *, const fusion_group *, uint32_t node, uint32_t input, uint32_t depth);
enum { GROUP_ALONE = 8 }; /* results that an element computed by itself takes as long as: a vector of the profile, before it is widened */
static const double GROUP_MARGIN = 1.25;
/* Of the contractions of one tile: how often an element of either operand is computed into a copy, a panel or one with a border (0: it is
   not), and which operand has panels. */
typedef struct group_copies {
  contract_set set;
  double times[CONTRACT_SET_MAX][2];
  uint32_t panel[CONTRACT_SET_MAX]; /* 0: none */
} group_copies;
void group_find_copies(const fusion_context *, const fusion_group *, group_copies *);
void group_add_panel(const fusion_context *, const fusion_group *, uint32_t operand, cost_work *);
void group_add_lane_operand(const fusion_context *, const fusion_group *, cost_work *);
void group_add_row_operand(const fusion_context *, const fusion_group *, cost_work *);
/* Would one kernel of these groups close a cycle (a path from one to another through a group outside)? */
bool group_makes_cycle(grouping *, const uint32_t *groups, uint32_t count);

/* ---- decision records (fusion/group/record.c): an edge has one, the last word about it ---- */

void group_record(grouping *, fusion_decision);
void group_record_pair(grouping *, uint32_t producer, uint32_t consumer, bool taken, const char *rule, const fusion_group *parts[2],
                       const fusion_group *fused);
void group_record_hyper(grouping *, const hyper_edge *, bool taken, const char *rule, double ns_parts, double bytes_parts,
                        const fusion_group *fused);
#endif
