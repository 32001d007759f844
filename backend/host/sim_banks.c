// Bank conflicts of shared memory.
//
// Input: the accesses of a warp. Output: counts. Shared memory has 32 banks of 4 bytes; an access
// of a warp is done in phases of at most 128 bytes (all lanes for up to 4 bytes a lane, half of
// them for 8, a quarter for 16; 8 rows of ldmatrix), and a phase is repeated for each further word
// that it touches in one bank. Source: CUDA C++ Programming Guide, "Shared Memory" of compute
// capability 5.x and later.
#include "backend/host/sim_impl.h"

enum { BANKS = 32, WORD = 4, PHASE_LANES = 64 }; // a lane is in a bank with two words at most

// Different words that one phase touches in its fullest bank; lanes that touch one word share it.
static int phase_turns(const int32_t *off, uint32_t mask, int lanes, int bytes) {
    uint32_t word[BANKS][PHASE_LANES];
    int count[BANKS] = {0}, most = 0;
    for (int lane = 0; lane < lanes; lane++) {
        if (!(mask >> lane & 1))
            continue;
        // Not yet checked: any offset may come.
        uint32_t at = (uint32_t)off[lane], first = at / WORD;
        uint32_t last = first + (at % WORD + (uint32_t)bytes - 1) / WORD;
        for (uint32_t w = first; w <= last; w++) {
            int bank = (int)(w % BANKS), k = 0;
            while (k < count[bank] && word[bank][k] != w)
                k++;
            if (k < count[bank])
                continue;
            word[bank][count[bank]++] = w;
            most = count[bank] > most ? count[bank] : most;
        }
    }
    return most;
}

void sim_banks_count(SimWarp *w, SimAccess kind, const int32_t *off, int lanes, uint32_t mask,
                     int bytes) {
    SimBanks *b = &w->sim->banks[kind];
    int step = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    for (int lane = 0; lane < lanes; lane += step) {
        int n = lanes - lane < step ? lanes - lane : step;
        int turns = phase_turns(off + lane, mask >> lane, n, bytes);
        b->phases += turns > 0;
        b->conflicts += turns > 1 ? turns - 1 : 0;
    }
}

SimBanks sim_banks(const Sim *sim, SimAccess kind) {
    return sim->banks[kind];
}
