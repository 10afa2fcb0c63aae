// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// prefix begins each name that is ours. Names of Kubernetes have no underscore.
const (
	prefix     = "plb_"
	forcedMark = "_forced"
)

// variable writes a name of Kubernetes as a part of the name of a variable. A label begins and ends
// with a letter or a digit, so a run of two underscores is never a separator.
func variable(name string) string { return strings.ReplaceAll(name, "-", "__") }

// serviceVariable is the variable of a Service with one port.
func serviceVariable(p envoyxds.Port) string {
	return prefix + variable(p.Namespace) + "_" + variable(p.Service)
}

// portVariable is the variable that a user names.
func portVariable(p envoyxds.Port) string {
	return serviceVariable(p) + "_" + strconv.Itoa(int(p.Number))
}

// UpstreamName is the upstream of an arm, with the sequence of the split at the end.
func UpstreamName(p envoyxds.Port, a envoyxds.Arm) string {
	name := prefix + p.Namespace + "_" + p.Service + "_" + strconv.Itoa(int(p.Number)) + "_" + a.Variation
	if a.Forced {
		name += forcedMark
	}
	return name + "." + strconv.FormatUint(p.Sequence, 10)
}

// ParseUpstream reads the name of the upstream of an arm; false for any other upstream.
func ParseUpstream(name string) (arm envoyname.Slot, sequence uint64, ours bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	rest, number, numbered := strings.Cut(rest, ".")
	rest, forced := strings.CutSuffix(rest, forcedMark)
	parts := strings.Split(rest, "_")
	if !ours || !numbered || len(parts) != 4 {
		return envoyname.Slot{}, 0, false
	}
	port, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil {
		return envoyname.Slot{}, 0, false
	}
	if sequence, err = strconv.ParseUint(number, 10, 64); err != nil {
		return envoyname.Slot{}, 0, false
	}
	arm = envoyname.Slot{Namespace: parts[0], Service: parts[1], Port: uint16(port), Variation: parts[3], Forced: forced}
	p := envoyxds.Port{Namespace: arm.Namespace, Service: arm.Service, Number: arm.Port, Sequence: sequence}
	if UpstreamName(p, envoyxds.Arm{Variation: arm.Variation, Forced: forced}) != name {
		return envoyname.Slot{}, 0, false
	}
	return arm, sequence, true
}
