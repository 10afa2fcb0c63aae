// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// delivered breaks an installation that carries out the rollout of one release.
func delivered(change func(*Snapshot)) breakage {
	return meshed(func(s *Snapshot) {
		last := &s.Workloads.Value[len(s.Workloads.Value)-1]
		last.Args = []string{rolloutsFlag}
		s.Delivery = Delivery{
			Releases:   Got([]Release{{Namespace: "mesh", Name: "web", Strategy: "standard", Waiting: "MinimumTime", Deadline: testNow.Add(time.Minute)}}),
			Strategies: Got([]string{"standard", "careful"}),
		}
		change(s)
	})
}

// carryWorks has the executor carry ReleaseWorks out.
func carryWorks(s *Snapshot) {
	w := s.executorWorkload()
	w.Args = append(w.Args, releaseWorksFlag)
}

func disableDelivery(s *Snapshot) { s.Workloads.Value[len(s.Workloads.Value)-1].Args = nil }

func held(names ...string) Read[[]Held] {
	out := make([]Held, 0, len(names))
	for _, name := range names {
		out = append(out, Held{Namespace: "mesh", Name: name})
	}
	return Got(out)
}

// releasePolicyCases are what can be wrong with a policy on rollouts, where they are carried out.
func releasePolicyCases(name string) map[string]breakage {
	cases := map[string]breakage{}
	for what, breaks := range validatingCases(name) {
		cases[what] = both(delivered(func(*Snapshot) {}), breaks)
	}
	cases["the policy is gone, and delivery is off"] = both(delivered(disableDelivery), validatingCases(name)["the policy is gone"])
	cases["a matchCondition"] = both(delivered(func(*Snapshot) {}), policyIn(name, func(p *Policy) { p.Conditions = []string{"never"} }))
	return cases
}

// supersedeCases are releasePolicyCases, and what can be wrong with parameters.
func supersedeCases() map[string]breakage {
	cases := releasePolicyCases(releaseSupersedePolicy)
	for what, breaks := range map[string]breakage{
		"parameters of another kind": policyIn(releaseSupersedePolicy, func(p *Policy) { p.ParamKind = "ConfigMap" }),
		"no parameters":              bindingIn(releaseSupersedePolicy, func(b *Binding) { b.Param = nil }),
		"one release by name":        bindingIn(releaseSupersedePolicy, func(b *Binding) { b.Param.Name = "web" }),
		"releases by label":          bindingIn(releaseSupersedePolicy, func(b *Binding) { b.Param.Selector.MatchLabels = map[string]string{"a": "b"} }),
	} {
		cases[what] = both(delivered(func(*Snapshot) {}), breaks)
	}
	return cases
}

func deliveryBreakages() map[string]map[string]breakage {
	return map[string]map[string]breakage{
		"policy.release-writers":      releasePolicyCases(releaseWritersPolicy),
		"policy.release-work-writers": releasePolicyCases(releaseWorkWritersPolicy),
		"policy.release-supersede":    supersedeCases(),
		"delivery.releases": {
			"a run waits for its time": delivered(func(*Snapshot) {}),
			"a run waits past a deadline": delivered(func(s *Snapshot) {
				r := &s.Delivery.Releases.Value[0]
				r.Waiting, r.Message, r.Deadline = "Capacity", "canary has 1 of 4 ready pods", testNow.Add(-time.Minute)
			}),
			"many runs do": delivered(func(s *Snapshot) {
				for i := range maxProblems + 3 {
					s.Delivery.Releases.Value = append(s.Delivery.Releases.Value, Release{Namespace: "mesh", Name: fmt.Sprint("web-", i), Waiting: "Capacity", Deadline: testNow.Add(-time.Minute)})
				}
			}),
			"a run waits without a deadline":                delivered(func(s *Snapshot) { s.Delivery.Releases.Value[0].Deadline = time.Time{} }),
			"a release has a rollout, and delivery is off":  delivered(disableDelivery),
			"strategies without releases, and delivery off": delivered(func(s *Snapshot) { disableDelivery(s); s.Delivery.Releases = Got([]Release{}) }),
			"neither strategies nor releases, delivery off": delivered(func(s *Snapshot) {
				disableDelivery(s)
				s.Delivery = Delivery{Releases: Gone[[]Release](), Strategies: Gone[[]string]()}
			}),
			"releases cannot be read":   delivered(func(s *Snapshot) { s.Delivery.Releases = forbidden[[]Release]("list abreleases.plumbline.dev") }),
			"strategies cannot be read": delivered(func(s *Snapshot) { s.Delivery.Strategies = forbidden[[]string]("list rolloutstrategies.plumbline.dev") }),
			"there is no mesh":          on(func(*Snapshot) {}),
		},
		"delivery.works": {
			"a release without a clone": delivered(func(*Snapshot) {}),
			"a clone, and an executor that may write": delivered(func(s *Snapshot) {
				s.Delivery.Releases.Value[0].NeedsExecutor, s.Delivery.Releases.Value[0].Namespace = true, "shop"
				carryWorks(s)
			}),
			"a clone that cannot be made": delivered(func(s *Snapshot) {
				r := &s.Delivery.Releases.Value[0]
				r.NeedsExecutor, r.Namespace, r.Problem = true, "shop", "spec.variations[canary].clone.podLabels: the Service web selects the pods of the clone: give another value to one of app"
				carryWorks(s)
			}),
			"a clone, and no executor": delivered(func(s *Snapshot) { s.Delivery.Releases.Value[0].NeedsExecutor = true }),
			"a clone, and an executor that was not let in": delivered(func(s *Snapshot) {
				s.Delivery.Releases.Value[0].NeedsExecutor = true
				carryWorks(s)
			}),
			"many clones": delivered(func(s *Snapshot) {
				for i := range maxProblems + 2 {
					s.Delivery.Releases.Value = append(s.Delivery.Releases.Value, Release{Namespace: "mesh", Name: fmt.Sprint("web-", i), NeedsExecutor: true})
				}
			}),
			"a clone, and delivery is off": delivered(func(s *Snapshot) { disableDelivery(s); s.Delivery.Releases.Value[0].NeedsExecutor = true }),
			"releases cannot be read":      delivered(func(s *Snapshot) { s.Delivery.Releases = forbidden[[]Release]("list abreleases.plumbline.dev") }),
			"roles cannot be read":         delivered(func(s *Snapshot) { s.Roles = forbidden[Roles]("list clusterroles.rbac.authorization.k8s.io") }),
			"there is no mesh":             on(func(*Snapshot) {}),
		},
		"delivery.finalizers": {
			"a deletion waits that would put a minimum back": on(func(s *Snapshot) {
				s.Delivery.Held = held("web")
				s.Delivery.Held.Value[0].Autoscaler, s.Delivery.Held.Value[0].Former = "web", 2
			}),
			"a release is held, and rollouts are carried out": delivered(func(s *Snapshot) { s.Delivery.Held = held("web") }),
			"a release is held, and delivery is off":          delivered(func(s *Snapshot) { disableDelivery(s); s.Delivery.Held = held("web") }),
			"a deletion waits, and there is no mesh": on(func(s *Snapshot) {
				s.Delivery.Held = held("web")
				s.Delivery.Held.Value[0].Deleting = true
			}),
			"no release is held, and there is no mesh": on(func(*Snapshot) {}),
			"many releases are held": on(func(s *Snapshot) {
				var names []string
				for i := range maxProblems + 2 {
					names = append(names, fmt.Sprint("web-", i))
				}
				s.Delivery.Held = held(names...)
			}),
			"the kind is not there":                   on(func(s *Snapshot) { s.Delivery.Held = Gone[[]Held]() }),
			"releases cannot be read":                 on(func(s *Snapshot) { s.Delivery.Held = forbidden[[]Held]("list abreleases.plumbline.dev") }),
			"it is not known whether there is a mesh": on(hidden["workloads"]),
		},
		"delivery.strategies": {
			"a strategy of a person is not used":  delivered(func(*Snapshot) {}),
			"a strategy of the chart is not used": delivered(func(s *Snapshot) { s.Delivery.Shipped = []string{"careful"} }),
			"delivery is off":                     delivered(disableDelivery),
			"releases cannot be read":             delivered(func(s *Snapshot) { s.Delivery.Releases = forbidden[[]Release]("list abreleases.plumbline.dev") }),
			"strategies cannot be read":           delivered(func(s *Snapshot) { s.Delivery.Strategies = forbidden[[]string]("list rolloutstrategies.plumbline.dev") }),
		},
		"delivery.prometheus": {
			"Prometheus answers": delivered(func(s *Snapshot) { s.Delivery.Silences = Got([]Silence{}) }),
			"Prometheus does not answer": delivered(func(s *Snapshot) {
				s.Delivery.Silences = Got([]Silence{
					{"mesh", "web", "slow", testNow.Add(-2 * time.Minute)}, {"mesh", "web", "errors", testNow.Add(-time.Minute)}, {"mesh", "cart", "errors", testNow.Add(-time.Hour)},
				})
			}),
			"releases cannot be read": delivered(func(s *Snapshot) { s.Delivery.Silences = forbidden[[]Silence]("list abreleases.plumbline.dev") }),
			"there is no mesh":        on(func(*Snapshot) {}),
		},
	}
}
