// SPDX-License-Identifier: Apache-2.0

package envoyname

import (
	"strconv"
	"strings"
)

// Slot is what an Envoy cluster stands for.
type Slot struct {
	Namespace, Service string
	Port               uint16
	// Variation is "" of a service without a split.
	Variation string
	// Forced says that only requests come here which a header sends here. They would
	// tell nothing about a variation's share, nor about how visitors fare.
	Forced bool
}

// forced ends the name of a cluster for forced requests.
const forced = "|forced"

// Measured is a regular expression for the names of statistics of clusters whose
// requests count for a split: those with a variation that are not forced. What
// follows the dot is the statistic.
const Measured = `cluster\.[^.|]+\|[0-9]+\|[^.|]+\.`

// String is the name of its cluster.
func (s Slot) String() string {
	name := RouteName(s.Namespace, s.Service, s.Port) + "|" + s.Variation
	if s.Forced {
		name += forced
	}
	return name
}

// ParseSlot reads the name of a cluster; false for one that is none of ours.
func ParseSlot(cluster string) (Slot, bool) {
	rest, isForced := strings.CutSuffix(cluster, forced)
	parts := strings.Split(rest, "|")
	if len(parts) != 3 {
		return Slot{}, false
	}
	namespace, service, found := strings.Cut(parts[0], "/")
	port, err := strconv.ParseUint(parts[1], 10, 16)
	s := Slot{namespace, service, uint16(port), parts[2], isForced}
	return s, found && err == nil && s.String() == cluster
}

// RouteName of a port of a service.
func RouteName(namespace, service string, port uint16) string {
	return namespace + "/" + service + "|" + strconv.Itoa(int(port))
}
