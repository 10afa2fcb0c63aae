// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// prefix begins the name of each section that is ours. Names of namespaces, Services and variations
// have no underscore, so the parts of a name can be told apart.
const (
	prefix     = "plb_"
	forcedMark = "_forced"
)

// portName is the backend that a user names.
func portName(p envoyxds.Port) string {
	return prefix + p.Namespace + "_" + p.Service + "_" + strconv.Itoa(int(p.Number))
}

// serviceName is the other name of that backend if the Service has one port.
func serviceName(p envoyxds.Port) string { return prefix + p.Namespace + "_" + p.Service }

// BackendName is the backend of an arm.
func BackendName(p envoyxds.Port, a envoyxds.Arm) string {
	name := portName(p) + "_" + a.Variation
	if a.Forced {
		name += forcedMark
	}
	return name
}

// ParseBackend reads the name of the backend of an arm; false for any other backend.
func ParseBackend(name string) (envoyname.Slot, bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	rest, forced := strings.CutSuffix(rest, forcedMark)
	parts := strings.Split(rest, "_")
	if !ours || len(parts) != 4 {
		return envoyname.Slot{}, false
	}
	port, err := strconv.ParseUint(parts[2], 10, 16)
	s := envoyname.Slot{Namespace: parts[0], Service: parts[1], Port: uint16(port), Variation: parts[3], Forced: forced}
	p := envoyxds.Port{Namespace: s.Namespace, Service: s.Service, Number: s.Port}
	return s, err == nil && BackendName(p, envoyxds.Arm{Variation: s.Variation, Forced: forced}) == name
}

// serverName of a slot, which counts from 0 on.
func serverName(i int) string { return "s" + strconv.Itoa(i+1) }

// failoverName of a slot whose endpoint is one of the stable variation.
func failoverName(i int) string { return "f" + strconv.Itoa(i+1) }

// IsFailover says whether a server of an arm serves for the stable variation.
func IsFailover(server string) bool { return strings.HasPrefix(server, "f") }
