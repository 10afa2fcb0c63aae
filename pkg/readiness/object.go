// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"slices"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// object is one whose readiness is asked.
type object struct{ root, spec, status canon.Value }

// maxQuoted bounds, in bytes, what a message repeats of a condition.
const maxQuoted = 256

// number is a whole number, or the default when there is none.
func number(v canon.Value, otherwise int64) int64 {
	if v.Kind() != canon.Number {
		return otherwise
	}
	n, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func (o object) count(name string) int64 { return number(o.status.Get(name), 0) }

// wanted is spec.replicas, which the API server sets to 1 when nobody says it.
func (o object) wanted() int64 { return number(o.spec.Get("replicas"), 1) }

func isTrue(v canon.Value) bool { return v.Kind() == canon.Bool && v.Text() == "true" }

// observed asks whether the status speaks of the spec as it is. A controller
// that tells no observedGeneration is taken at its word.
func (o object) observed() (State, string) {
	seen := o.status.Get("observedGeneration")
	generation := number(o.root.Get("metadata").Get("generation"), 0)
	if seen.Kind() != canon.Number || generation == 0 {
		return "", ""
	}
	if n := number(seen, 0); n != generation {
		return notReady("generation %d was not looked at yet, only %d", generation, n)
	}
	return "", ""
}

// tells asks that the controller has looked at all: those of the built-in
// workloads always say which generation they saw.
func (o object) tells() (State, string) {
	if o.root.Get("metadata").Get("generation").Kind() != canon.Number {
		return unknown("it has no generation")
	}
	if o.status.Get("observedGeneration").Kind() != canon.Number {
		return notReady("its controller has not looked at it yet")
	}
	return "", ""
}

// condition is one of status.conditions; it is empty when there is none of its type.
type condition struct{ status, reason, message string }

func (o object) condition(name string) condition {
	for c := range o.status.Get("conditions").All() {
		if c.Get("type").Text() == name {
			return condition{c.Get("status").Text(), c.Get("reason").Text(), c.Get("message").Text()}
		}
	}
	return condition{}
}

// says is what a condition tells, in few words.
func (c condition) says(otherwise string) string {
	for _, text := range []string{c.message, c.reason} {
		if text != "" {
			return diff.TruncateText(text, maxQuoted)
		}
	}
	return otherwise
}

// abnormal looks at the two conditions that mean the same on every kind.
func (o object) abnormal() (State, string) {
	if c := o.condition("Stalled"); c.status == "True" {
		return notReady("it is stalled: %s", c.says("it does not say why"))
	}
	if c := o.condition("Reconciling"); c.status == "True" {
		return notReady("it is being reconciled: %s", c.says("its cause is unknown"))
	}
	return "", ""
}

// step is one demand on an object; it answers nothing when that is met.
type step func() (State, string)

// first answers with the first demand that is not met.
func first(steps ...step) (State, string) {
	for _, s := range steps {
		if state, message := s(); state != "" {
			return state, message
		}
	}
	return unknown("it does not say")
}

// atLeast demands a counter.
func atLeast(have, want int64, what string) step {
	return func() (State, string) {
		if have < want {
			return notReady("%d of %d %s", have, want, what)
		}
		return "", ""
	}
}

// noMore demands that what is not wanted any more is gone.
func noMore(have, want int64) step {
	return func() (State, string) {
		if have > want {
			return notReady("%d pods of before are still there", have-want)
		}
		return "", ""
	}
}

func done(format string, args ...any) step {
	return func() (State, string) { return ready(format, args...) }
}

// nativeGroups are the API groups of Kubernetes itself that do not end in k8s.io.
var nativeGroups = []string{"", "apps", "autoscaling", "batch", "extensions", "policy"}

// native says of a group that Kubernetes itself serves it: its kinds without a
// rule have no status that says whether they work. CustomResourceDefinitions may
// use *.k8s.io too, when they are approved; those are taken for custom unless
// their group is known.
func native(group string) bool {
	return slices.Contains(nativeGroups, group) || slices.Contains(nativeDomains, group)
}

var nativeDomains = []string{
	"admissionregistration.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
}
