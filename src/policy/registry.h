/* All policies of this program. */
#ifndef SW_POLICY_REGISTRY_H
#define SW_POLICY_REGISTRY_H

#include <sharewell/policy.h>

#define SW_DECLARE_POLICY(name) extern const struct sw_policy sw_policy_##name

SW_DECLARE_POLICY(sharewell);
SW_DECLARE_POLICY(fifo);
SW_DECLARE_POLICY(fjf);
SW_DECLARE_POLICY(sjf);
SW_DECLARE_POLICY(srtf);
SW_DECLARE_POLICY(srsf);
SW_DECLARE_POLICY(las);
SW_DECLARE_POLICY(gittins);
SW_DECLARE_POLICY(antman);
SW_DECLARE_POLICY(bigbrain);
SW_DECLARE_POLICY(salus);
SW_DECLARE_POLICY(gandiva);
SW_DECLARE_POLICY(philly);
SW_DECLARE_POLICY(chaos);

/* In the order in which people should meet them; NULL ends. */
extern const struct sw_policy *const sw_policies[];

/* Those that are orders alone with packing on top, as "las+pack"; NULL behind the last. */
const struct sw_policy *sw_policies_packed(size_t index);

/* By its name; NULL: there is none. */
const struct sw_policy *sw_policy_find(const char *name);

#endif
