// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func slotOf(s ir.Service, p ir.Port, variation string) envoyname.Slot {
	return envoyname.Slot{Namespace: s.Namespace, Service: s.Name, Port: p.Number, Variation: variation}
}

// ServiceOf says whose resource it is; false for a listener, whose name is an address,
// and for what is none of ours.
func ServiceOf(k ads.Key) (namespace, service string, found bool) {
	if k.Type == ads.Listener {
		return "", "", false
	}
	name, _, ours := strings.Cut(k.Name, "|")
	namespace, service, found = strings.Cut(name, "/")
	return namespace, service, ours && found
}
