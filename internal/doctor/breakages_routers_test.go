// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// routed breaks an installation with one TrafficRouter that a release names.
func routed(change func(*Snapshot)) breakage {
	return meshed(func(s *Snapshot) {
		s.Workloads.Value[len(s.Workloads.Value)-1].Args = []string{rolloutsFlag, routersFlag}
		s.Routers.All = Got([]Router{{Name: "edge", Type: "GatewayAPI", Ready: "True", Reason: "Configured"}})
		s.Routers.Releases = Got([]RoutedRelease{{Namespace: "mesh", Name: "web", Routers: []string{"edge"}}})
		change(s)
	})
}

func owned(change func(*gitops.Ownership)) breakage {
	return routed(func(s *Snapshot) {
		o := gitops.Ownership{
			Route: gitops.RouteName{Kind: "HTTPRoute", Namespace: "mesh", Name: "web"},
			Owner: gitops.Owner{Tool: gitops.ArgoCD, Kind: gitops.ApplicationKind, Namespace: "argocd", Name: "shop"}, Rule: "ignoreDifferences: []",
		}
		change(&o)
		s.Routers.Owned = Got([]gitops.Ownership{o})
	})
}

func routerBreakages() map[string]map[string]breakage {
	return map[string]map[string]breakage{
		"routers.ready": {
			"a router is ready": routed(func(*Snapshot) {}),
			"requests fail": routed(func(s *Snapshot) {
				s.Routers.All.Value[0] = Router{"edge", "Webhook", "False", "RequestsFail", "status 503: frozen"}
			}),
			"many routers are not ready": routed(func(s *Snapshot) {
				for i := range maxProblems + 3 {
					s.Routers.All.Value = append(s.Routers.All.Value, Router{fmt.Sprintf("edge-%02d", i), "Webhook", "False", "SecretUnreadable", "reading Secret edge: not found"})
				}
			}),
			"the discovery server has not looked yet": routed(func(s *Snapshot) { s.Routers.All.Value[0].Ready = "" }),
			"routers cannot be read":                  routed(hidden["routers"]),
		},
		"routers.enabled": {
			"a router is in use": routed(func(*Snapshot) {}),
			"routers are off":    routed(disableDelivery),
			"there is no mesh": on(func(s *Snapshot) {
				s.Routers.All = Got([]Router{{Name: "inner"}, {Name: "edge"}})
			}),
			"there is no router":     on(func(*Snapshot) {}),
			"routers cannot be read": routed(hidden["routers"]),
			"Deployments are hidden": both(routed(func(*Snapshot) {}), hide("workloads")),
			"the kind is not there":  on(func(s *Snapshot) { s.Routers.All = Gone[[]Router]() }),
		},
		"routers.releases": {
			"a release names a router":              routed(func(*Snapshot) {}),
			"a release names a router that is gone": routed(func(s *Snapshot) { s.Routers.All = Got([]Router{}) }),
			"the kind of routers is gone":           routed(func(s *Snapshot) { s.Routers.All = Gone[[]Router]() }),
			"routers cannot be read":                routed(hidden["routers"]),
			"releases cannot be read":               routed(hidden["routed"]),
		},
		"routers.gitops": {
			"Argo CD undoes the weights":  owned(func(*gitops.Ownership) {}),
			"Argo CD ignores the weights": owned(func(o *gitops.Ownership) { o.Ignored = true }),
			"Flux undoes the weights": owned(func(o *gitops.Ownership) {
				o.Owner = gitops.Owner{Tool: gitops.Flux, Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
			}),
			"a field manager of Argo CD alone": owned(func(o *gitops.Ownership) {
				o.Owner, o.Unread = gitops.Owner{Tool: gitops.ArgoCD}, "no mark names the object of Argo CD"
			}),
			"no tool applies the route": routed(func(*Snapshot) {}),
			"routes cannot be read":     routed(hidden["owned routes"]),
		},
	}
}
