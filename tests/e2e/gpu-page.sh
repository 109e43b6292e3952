#!/bin/sh
# tests/gpu/page.py, by which scripts on machines with a GPU talk to the runtime, knows the page as include/sharewell/runtime.h has it.
. "$(dirname "$0")/lib.sh"
cat >page.c <<'END'
#include <stddef.h>
#include <stdio.h>
#include <sharewell/runtime.h>
int main(void)
{
	printf("%zu %zu %zu %zu %zu %zu %zu %u\n", sizeof(struct sw_page), offsetof(struct sw_page, neighbours), offsetof(struct sw_page, host_ledger),
	       offsetof(struct sw_page, gpus), offsetof(struct sw_page, slots), sizeof(struct sw_page_slot), offsetof(struct sw_page_slot, gpus), SW_PAGE_FORMAT);
	return 0;
}
END
${CC:-cc} -I "$SW_SOURCE_DIR/include" -o page page.c && ./page >wanted
said $? 'the header tells where things lie'
python3 - "$SW_SOURCE_DIR/tests/gpu" >found <<'END'
import struct, sys
sys.path.insert(0, sys.argv[1])
import page as p
made = p.Page("made", [bytes(16)])
print(p.SIZE, p.NEIGHBOURS_AT, p.LEDGER_AT, p.GPU_AT, p.SLOT_AT, p.SLOT_SIZE, p.USE_AT, struct.unpack_from("<QI", made.map)[1])
END
cmp wanted found
said $? 'the script knows them' work/wanted work/found
end
