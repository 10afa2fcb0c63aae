// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func objectOf(s traffic.Split) Object { return Object{"ABRelease", s.Namespace, s.Name} }

// chooseSplits leaves each Service the oldest split that names it.
func (b *builder) chooseSplits() {
	oldest := slices.SortedFunc(slices.Values(b.in.Splits), func(a, b traffic.Split) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range oldest {
		service := types.NamespacedName{Namespace: s.Namespace, Name: s.Service}
		if first, is := b.splits[service]; is {
			b.refuse(objectOf(s), AnotherSplit, fmt.Sprintf("%s divides the requests of Service %s already: delete one of them", objectOf(first), s.Service))
			continue
		}
		b.splits[service] = s
	}
}

// settle gives a service the routing of its split, if both can be. Whether the
// service stays without it is the result: yes if it is managed for itself.
func (b *builder) settle(svc *corev1.Service, split traffic.Split, s *Service, ok bool) bool {
	s.Sequence = max(s.Sequence, split.Sequence)
	if !ok {
		b.refuse(objectOf(split), ServiceRefused, fmt.Sprintf("Service %s cannot be managed: %s", split.Service, b.refusals(serviceObject(svc))))
		return false
	}
	problems := Check(split)
	b.problems = append(b.problems, problems...)
	if len(problems) > 0 {
		return svc.Labels[Managed] == "true"
	}
	routing := split.Routing
	routing.Key.Name = headerCase(routing.Key)
	routing.Override = strings.ToLower(routing.Override)
	routing.Match.Header = strings.ToLower(routing.Match.Header)
	s.Routing = &routing
	return true
}

// headerCase is lower: header names have no case, and those of cookies have one.
func headerCase(k traffic.Key) string {
	if k.Kind == traffic.ByHeader {
		return strings.ToLower(k.Name)
	}
	return k.Name
}

// selects says whether a pod is a variation's.
func selects(v traffic.Variation) func(Pod) bool {
	if v.Workload != nil {
		return func(p Pod) bool { return p.Workload == *v.Workload }
	}
	selector, err := metav1.LabelSelectorAsSelector(v.Selector)
	if err != nil {
		return func(Pod) bool { return false }
	}
	return func(p Pod) bool { return selector.Matches(labels.Set(p.Labels)) }
}

// members are the pods of each variation. One that is in two counts as that one's
// which comes first, the stable one before all: so nobody gets a version on trial by
// mistake.
func (b *builder) members(svc *corev1.Service, split traffic.Split) map[string][]Pod {
	members := map[string][]Pod{}
	is := make([]func(Pod) bool, len(split.Variations))
	for i, share := range split.Shares {
		of := slices.IndexFunc(split.Variations, func(v traffic.Variation) bool { return v.Name == share.Variation })
		is[i] = selects(split.Variations[of])
	}
	service := labels.Nothing()
	if len(svc.Spec.Selector) > 0 {
		service = labels.SelectorFromSet(svc.Spec.Selector)
	}
	found := findings{}
	for _, p := range b.pods[split.Namespace] {
		var of []string
		for i, selected := range is {
			if selected(p) {
				of = append(of, split.Shares[i].Variation)
			}
		}
		matches := service.Matches(labels.Set(p.Labels))
		found.look(p, of, matches, split.Shares.Stable())
		if len(of) > 0 {
			members[of[0]] = append(members[of[0]], p)
		}
	}
	b.tell(split, found)
	return members
}

// serve gives a variation that another one serves the pods of that one.
func serve(split traffic.Split, members map[string][]Pod) map[string][]Pod {
	served := maps.Clone(members)
	for _, v := range split.Variations {
		if v.ServedBy != "" {
			served[v.Name] = members[v.ServedBy]
		}
	}
	return served
}

// findings about pods of a split: how many, and the first one's name.
type findings map[[2]string]struct {
	count int
	first string
}

func (f findings) look(p Pod, of []string, service bool, stable string) {
	add := func(reason Reason, what string) {
		k := [2]string{string(reason), what}
		found := f[k]
		if found.count++; found.first == "" {
			found.first = p.Name
		}
		f[k] = found
	}
	switch {
	case len(of) > 1:
		add(PodInTwoVariations, strings.Join(of, " and "))
	case len(of) == 0 && service:
		add(PodInNoVariation, "")
	case len(of) == 1 && service && of[0] != stable:
		add(SelectorsOverlap, of[0])
	}
}

func (b *builder) tell(split traffic.Split, found findings) {
	for k, f := range found {
		pods := fmt.Sprintf("%d pods", f.count)
		if f.count == 1 {
			pods = "1 pod"
		}
		pods += fmt.Sprintf(" (%s)", f.first)
		var message string
		switch Reason(k[0]) {
		case PodInTwoVariations:
			message = fmt.Sprintf("%s in %s, counted as the first's: select them apart", pods, k[1])
		case PodInNoVariation:
			message = fmt.Sprintf("%s of Service %s in no variation, which get no requests from proxies: let a variation select them", pods, split.Service)
		default:
			message = fmt.Sprintf("%s of %s selected by Service %s, which gives them requests of clients without a proxy at every weight: let its selector not match them", pods, k[1], split.Service)
		}
		b.warn(objectOf(split), Reason(k[0]), message)
	}
}
