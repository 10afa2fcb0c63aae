// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Served is one port of a Service whose requests come by Traefik.
type Served struct {
	Service types.NamespacedName
	Port    uint16
	// HTTP2 has Traefik speak HTTP/2 without TLS to the endpoints, as gRPC needs.
	HTTP2 bool
	Route Route
}

// Route says which requests are for the Service. The zero Route makes no router.
type Route struct {
	// Rule is in Traefik's language, such as Host(`shop.example`).
	Rule string
	// EntryPoints are those of Traefik's static configuration; none is all of them.
	EntryPoints []string
	// Priority is that of the router without headers; routers with headers are above it. 0 is the length of the rule,
	// as in Traefik.
	Priority int
}

// Name of the weighted service. A name of Kubernetes has no underscore, so two ports never share a name.
func (s Served) Name() string {
	return fmt.Sprintf("plb_%s_%s_%d", s.Service.Namespace, s.Service.Name, s.Port)
}

// The last parts of names of services.
const (
	// forcedPart marks requests that an override sends: these are in no count.
	forcedPart = "_forced"
	// failoverPart marks requests of a variation without endpoints, which the first variation answers.
	failoverPart = "_failover"
	// undividedPart marks the requests of a Service without a split.
	undividedPart = "__undivided"
)

func (s Served) arm(variation string) string { return s.Name() + "_" + variation }

func (s Served) marker(sequence uint64) string { return fmt.Sprintf("%s__%d", s.Name(), sequence) }

// child tells what a child of the weighted service is: the marker of a sequence, or a variation.
func (s Served) child(name string) (variation string, sequence uint64, err error) {
	name = withoutProvider(name)
	rest, is := strings.CutPrefix(name, s.Name()+"_")
	if !is {
		return "", 0, fmt.Errorf("service %s has the child %.80q, which Plumbline does not make", s.Name(), name)
	}
	if number, is := strings.CutPrefix(rest, "_"); is {
		sequence, err = strconv.ParseUint(number, 10, 64)
		return "", sequence, err
	}
	return strings.TrimSuffix(rest, failoverPart), 0, nil
}

// withoutProvider is the name of a service as its provider has it.
func withoutProvider(name string) string {
	name, _, _ = strings.Cut(name, "@")
	return name
}
