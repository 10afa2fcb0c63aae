// SPDX-License-Identifier: Apache-2.0

package routers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/internal/routeowner"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// State of a finding.
type State string

// The states.
const (
	// OK: the check found no fault.
	OK State = "OK"
	// Problem: a split may not become effective, or not stay so.
	Problem State = "Problem"
	// Unknown: the check could not read the objects that it needs.
	Unknown State = "Unknown"
)

// Finding is one answer of one check.
type Finding struct {
	// Check is conditions, requests, namespaces, permissions or gitops.
	Check   string `json:"check"`
	State   State  `json:"state"`
	Message string `json:"message"`
	// Fix says what to do; it may have several lines, YAML included.
	Fix string `json:"fix,omitempty"`
}

// Findings are the answers about one TrafficRouter.
type Findings struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Findings []Finding `json:"findings"`
}

// Has tells whether a finding has a state.
func (f *Findings) Has(state State) bool {
	return slices.ContainsFunc(f.Findings, func(one Finding) bool { return one.State == state })
}

// CheckRouter looks at a TrafficRouter and at the objects that it depends on. system is the namespace of Plumbline.
func CheckRouter(ctx context.Context, c client.Client, name, system string) (*Findings, error) {
	router, releases, report, err := ReadRouter(ctx, c, name)
	if err != nil {
		return nil, err
	}
	releases = slices.DeleteFunc(releases, func(r v1alpha1.ABRelease) bool { return !r.Spec.NamesRouter(name) })
	out := &Findings{Name: router.Name, Type: string(router.Spec.Type)}
	add := func(check string, found ...Finding) {
		for i := range found {
			found[i].Check = check
		}
		out.Findings = append(out.Findings, found...)
	}
	add("conditions", checkConditions(router, report))
	add("requests", checkRequests(report))
	if report.Unread != "" {
		for _, check := range []string{"namespaces", "gitops"} {
			add(check, Finding{State: Unknown, Message: report.Unread})
		}
	} else {
		add("namespaces", checkNamespaces(ctx, c, router, releases)...)
		add("gitops", checkOwners(ctx, c, releases)...)
	}
	rights, err := checkRights(ctx, c, rightsOf(router, releases, system), system)
	add("permissions", rights...)
	return out, err
}

// checkConditions tells whether the discovery server can use the router.
func checkConditions(router *v1alpha1.TrafficRouter, report *Report) Finding {
	switch ready := report.Ready(); {
	case ready == nil || router.Status.ObservedGeneration != router.Generation:
		return Finding{State: Unknown, Message: "the discovery server has not looked at this generation", Fix: "set routers.enabled in the values of the chart"}
	case ready.Status == metav1.ConditionTrue:
		return Finding{State: OK, Message: ready.Message}
	default:
		return Finding{State: Problem, Message: ready.Reason + ": " + ready.Message, Fix: "kubectl describe trafficrouter " + router.Name}
	}
}

// checkRequests tells whether the program of the router answers, by the last request of the discovery server.
func checkRequests(report *Report) Finding {
	ready, version := report.Ready(), ""
	if report.Version != "" {
		version = "; it has version " + report.Version
	}
	switch {
	case ready != nil && ready.Reason == v1alpha1.ReasonRequestsFail:
		return Finding{State: Problem, Message: "the last request failed: " + ready.Message, Fix: "look at the address, at the NetworkPolicy of plumbline-xds, and at the log of the program"}
	case len(report.Releases) == 0 && report.Unread == "":
		return Finding{State: OK, Message: "no release names the router, so the discovery server makes no requests"}
	case report.LastRefusal != nil:
		return Finding{State: OK, Message: fmt.Sprintf("the last request succeeded%s. An earlier one failed at %s: %s",
			version, report.LastRefusal.RefusalTime.UTC().Format("2006-01-02T15:04:05Z"), report.LastRefusal.Message)}
	default:
		return Finding{State: OK, Message: "no request has failed" + version}
	}
}

// checkNamespaces names the releases whose namespace the router does not allow.
func checkNamespaces(ctx context.Context, c client.Reader, router *v1alpha1.TrafficRouter, releases []v1alpha1.ABRelease) (found []Finding) {
	selector, err := metav1.LabelSelectorAsSelector(router.Spec.AllowedNamespaces)
	if err != nil {
		return []Finding{{State: Problem, Message: "spec.allowedNamespaces: " + err.Error()}}
	}
	for _, name := range namespacesOf(releases) {
		namespace := &corev1.Namespace{}
		switch err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); {
		case err != nil:
			found = append(found, Finding{State: Unknown, Message: "whether namespace " + name + " is allowed: " + err.Error()})
		case !selector.Matches(labels.Set(namespace.Labels)):
			found = append(found, Finding{State: Problem, Message: "releases of namespace " + name + " name the router, and allowedNamespaces does not select the namespace",
				Fix: "label the namespace, or change spec.allowedNamespaces of the TrafficRouter"})
		}
	}
	if found == nil {
		found = []Finding{{State: OK, Message: "the namespaces of all releases that name the router are allowed"}}
	}
	return found
}

func namespacesOf(releases []v1alpha1.ABRelease) (names []string) {
	for i := range releases {
		names = append(names, releases[i].Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkOwners names the GitOps tools that apply routes of releases and do not ignore the weights.
func checkOwners(ctx context.Context, c client.Reader, releases []v1alpha1.ABRelease) (found []Finding) {
	for i := range releases {
		for _, route := range routeowner.RoutesOf(&releases[i]) {
			ownership, owned, err := routeowner.FindOwnership(ctx, c, route)
			switch {
			case err != nil:
				found = append(found, Finding{State: Unknown, Message: "which tool applies " + route.String() + ": " + err.Error()})
			case owned:
				found = append(found, describeOwnership(&ownership)...)
			}
		}
	}
	if found == nil {
		found = []Finding{{State: OK, Message: "no GitOps tool undoes weights"}}
	}
	return found
}

func describeOwnership(o *gitops.Ownership) []Finding {
	fix := fmt.Sprintf("add this to the spec of the object of %s:\n%s", o.Owner, strings.TrimSpace(o.Rule))
	switch {
	case o.Unread != "":
		return []Finding{{State: Unknown, Message: fmt.Sprintf("whether %s, which applies %s, ignores the weights: %s", o.Owner, o.Route, o.Unread), Fix: fix}}
	case !o.Ignored:
		return []Finding{{State: Problem, Message: fmt.Sprintf("%s applies %s and does not ignore the weights: it undoes each split", o.Owner, o.Route), Fix: fix}}
	}
	return nil
}
