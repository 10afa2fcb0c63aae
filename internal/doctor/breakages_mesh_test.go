// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// withProxies adds a mesh to an installation: one namespace whose pods get proxies, of
// which one runs.
func withProxies(s *Snapshot) {
	s.Workloads.Value = append(s.Workloads.Value, Workload{Name: DiscoveryName, Component: "xds", Version: s.Workloads.Value[0].Version, Desired: 2, Ready: 2})
	namespaces := maps.Clone(s.Namespaces.Value) // other snapshots share the old ones
	namespaces["mesh"] = map[string]string{inject.LabelInject: inject.Enabled, podSecurity: "restricted"}
	s.Namespaces.Value = namespaces
	s.Mesh = Mesh{
		Problems: Got([]ir.Problem{}), Authorities: Got(map[string]bool{"mesh": true}), Mode: Got(inject.Explicit),
		Injected: Got([]string{"mesh/web-0"}), Doubled: Got([]string{}), Connected: Got(map[string]bool{"mesh/web-0": true}),
		Unserved: Got(map[string][]string{}),
	}
	s.Delivery = Delivery{Releases: Got([]Release{}), Strategies: Got([]string{}), Held: Got([]Held{}), Silences: Got([]Silence{})}
}

// meshed breaks an installation that has a mesh.
func meshed(change func(*Snapshot)) breakage {
	return on(func(s *Snapshot) { withProxies(s); change(s) })
}

func TestAHealthyMesh_PassesEverything(t *testing.T) {
	s := healthy(t)
	withProxies(s)
	for _, f := range Examine(s).Findings {
		if f.Severity != OK {
			t.Errorf("%s: %s %s: %s", f.ID, f.Severity, f.Object, f.Message)
		}
	}
}

func meshBreakages() map[string]map[string]breakage {
	problem := func(name string, port uint16) ir.Problem {
		return ir.Problem{Object: ir.Object{Kind: "Service", Namespace: "mesh", Name: name}, Port: port, Reason: ir.Headless, Message: "clients connect to its pods", Refused: true}
	}
	label := func(name, value string) func(*Snapshot) {
		return func(s *Snapshot) { s.Namespaces.Value["mesh"][name] = value }
	}
	return map[string]map[string]breakage{
		"mesh.services": {
			"a Service that is left alone": meshed(func(s *Snapshot) { s.Mesh.Problems = Got([]ir.Problem{problem("web", 0)}) }),
			"one port of it is":            meshed(func(s *Snapshot) { s.Mesh.Problems = Got([]ir.Problem{problem("web", 80)}) }),
			"a setting of it is refused": meshed(func(s *Snapshot) {
				p := problem("web", 0)
				p.Reason, p.Message, p.Refused = ir.InvalidSetting, "the annotation is wrong", false
				s.Mesh.Problems = Got([]ir.Problem{p})
			}),
			"many are": meshed(func(s *Snapshot) {
				for i := range maxProblems + 3 {
					s.Mesh.Problems.Value = append(s.Mesh.Problems.Value, problem(fmt.Sprint("web-", i), 0))
				}
			}),
			"Services cannot be read": meshed(func(s *Snapshot) { s.Mesh.Problems = forbidden[[]ir.Problem]("list services") }),
			"there is no mesh":        on(func(*Snapshot) {}),
			"Deployments are hidden":  hide("workloads"),
		},
		"mesh.authority": {
			"a namespace has no copy":   meshed(func(s *Snapshot) { s.Mesh.Authorities = Got(map[string]bool{"shop": true}) }),
			"ConfigMaps cannot be read": meshed(func(s *Snapshot) { s.Mesh.Authorities = forbidden[map[string]bool]("list configmaps") }),
			"namespaces are hidden":     meshed(hidden["namespaces"]),
		},
		"mesh.pod-security": {
			"restricted, and pods of mode redirect by default": meshed(func(s *Snapshot) { s.Mesh.Mode = Got(inject.Redirect) }),
			"baseline, and mode redirect of the namespace":     meshed(func(s *Snapshot) { label(inject.LabelMode, "redirect")(s); label(podSecurity, "baseline")(s) }),
			"privileged": meshed(func(s *Snapshot) { s.Mesh.Mode = Got(inject.Redirect); label(podSecurity, "privileged")(s) }),
			"mode explicit of the namespace": meshed(func(s *Snapshot) {
				s.Mesh.Mode = Got(inject.Redirect)
				label(inject.LabelMode, "explicit")(s)
			}),
			"the mode cannot be read": meshed(func(s *Snapshot) { s.Mesh.Mode = forbidden[inject.Mode]("get configmaps") }),
			"namespaces are hidden":   meshed(hidden["namespaces"]),
		},
		"mesh.istio": {
			"two pods have both":            meshed(func(s *Snapshot) { s.Mesh.Doubled = Got([]string{"mesh/web-1", "mesh/web-0"}) }),
			"a namespace asks for both":     meshed(label("istio-injection", "enabled")),
			"a namespace has a revision":    meshed(label("istio.io/rev", "default")),
			"a namespace is of its ambient": meshed(label("istio.io/dataplane-mode", "ambient")),
			"pods cannot be read":           meshed(func(s *Snapshot) { s.Mesh.Doubled = forbidden[[]string]("list pods") }),
			"namespaces are hidden":         meshed(hidden["namespaces"]),
		},
		"mesh.proxies": {
			"one of two is not connected": meshed(func(s *Snapshot) { s.Mesh.Injected = Got([]string{"mesh/web-0", "mesh/web-1"}) }),
			"none is injected":            meshed(func(s *Snapshot) { s.Mesh.Injected = Got([]string{}) }),
			"pods cannot be read":         meshed(func(s *Snapshot) { s.Mesh.Injected = forbidden[[]string]("list pods") }),
			"a replica does not answer":   meshed(func(s *Snapshot) { s.Mesh.Connected = Read[map[string]bool]{Reason: "asking xds-a: no route to host"} }),
		},
		"mesh.orphans": {
			"a discovery server and two pods with proxies": meshed(func(s *Snapshot) { s.Mesh.Injected = Got([]string{"mesh/web-1", "mesh/web-0"}) }),
			"the mesh is gone, and they are left":          on(func(s *Snapshot) { s.Mesh.Injected = Got([]string{"mesh/web-1", "mesh/web-0"}) }),
			"all of Plumbline is gone": on(func(s *Snapshot) {
				s.Namespace, s.Mesh.Injected = "", Got([]string{"mesh/web-0"})
			}),
			"none is left":           on(func(*Snapshot) {}),
			"pods cannot be read":    on(func(s *Snapshot) { s.Mesh.Injected = forbidden[[]string]("list pods") }),
			"Deployments are hidden": hide("workloads"),
		},
		"mesh.upstreams": {
			"a Service is not exported to two pods": meshed(func(s *Snapshot) {
				text := []string{"Service pay/api: NotExported: the owner exports a Service with mesh in the annotation plumbline.dev/export-to of the Service or of namespace pay"}
				s.Mesh.Unserved = Got(map[string][]string{"mesh/web-0": text, "mesh/web-1": text})
			}),
			"of more pods than are shown": meshed(func(s *Snapshot) {
				all := map[string][]string{}
				for i := range maxProblems + 3 {
					all[fmt.Sprintf("mesh/web-%02d", i)] = []string{fmt.Sprint("Service pay/", i, ": NotExported: ...")}
				}
				s.Mesh.Unserved = Got(all)
			}),
			"a replica does not answer": meshed(func(s *Snapshot) {
				s.Mesh.Unserved = Read[map[string][]string]{Reason: "asking xds-a: no route to host"}
			}),
		},
	}
}
