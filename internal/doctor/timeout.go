// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// requestLimit is the longest that the API server gives a write, in seconds
	// (requestTimeoutUpperBound in its handlers); after it the write fails,
	// whatever the failure policies are.
	requestLimit = 34
	// waitWarning is where people start to notice and clients to give up.
	waitWarning = 15
)

// wait is the worst case for one kind of write.
type wait struct {
	target    target
	operation admissionv1.OperationType
	namespace string
	seconds   int32
	// called names webhooks with their seconds, in series first.
	called []string
}

// checkTimeouts sums up what a write of a registered kind waits for when every
// webhook hangs: mutating ones one after another, those with reinvocation
// perhaps twice, then validating ones at the same time.
func checkTimeouts(s *Snapshot) []Finding {
	if !s.Webhooks.known() {
		return []Finding{s.Webhooks.unknown("how long webhooks can hold a write up")}
	}
	if len(s.registered()) == 0 {
		return []Finding{{Severity: Unknown, Message: "cannot tell how long webhooks can hold a write up: no kind is registered"}}
	}
	var out []Finding
	var worst wait
	for _, t := range s.registered() {
		w := worstWait(s, t)
		if w.seconds > worst.seconds {
			worst = w
		}
		if w.seconds > waitWarning {
			out = append(out, w.finding())
		}
	}
	if len(out) == 0 && !s.Namespaces.known() { // a selector may take labels that nobody saw
		return []Finding{s.Namespaces.unknown("how long webhooks can hold a write up in the namespaces that they select")}
	}
	if len(out) == 0 {
		return []Finding{{Severity: OK, Message: fmt.Sprintf("hanging webhooks hold a write of a registered kind up for at most %d s", worst.seconds)}}
	}
	return out
}

func (w wait) finding() Finding {
	f := Finding{Severity: Warning, Object: w.target.String(),
		Fix: "lower timeoutSeconds of the slowest, or keep them from namespaces and kinds that they do not need"}
	f.Message = fmt.Sprintf("%s in namespace %s waits up to %d s when webhooks hang: %s", w.operation, w.namespace, w.seconds, named(w.called))
	if w.seconds >= requestLimit {
		f.Severity = Critical
		f.Message += fmt.Sprintf("; the API server gives up after %d s, and then the write fails even if all of them say Ignore", requestLimit)
	}
	return f
}

func worstWait(s *Snapshot, t target) wait {
	worst := wait{target: t}
	for _, operation := range []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
		matching := matchingWebhooks(s, t.request(operation))
		for _, namespace := range guardableNamespaces(s) {
			w := waitOf(matching, labels.Set(s.namespaceLabels(namespace)))
			if w.seconds > worst.seconds {
				w.target, w.operation, w.namespace = t, operation, namespace
				worst = w
			}
		}
	}
	return worst
}

// guardableNamespaces are those of the cluster that are not excluded; where they
// cannot be read, one that every name-based selector takes.
func guardableNamespaces(s *Snapshot) []string {
	excluded := specguard.ExcludedNamespaces(s.Namespace)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces.Value)) {
		if !slices.Contains(excluded, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{metav1.NamespaceDefault}
	}
	return out
}

type called struct {
	*Webhook
	selector labels.Selector
}

func matchingWebhooks(s *Snapshot, r request) []called {
	var out []called
	for i := range s.Webhooks.Value {
		w := &s.Webhooks.Value[i]
		if !r.matchesAny(w.Rules) {
			continue
		}
		selector := labels.Everything()
		if w.NamespaceSelector != nil {
			if parsed, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector); err == nil {
				selector = parsed
			}
		}
		out = append(out, called{w, selector})
	}
	return out
}

func waitOf(webhooks []called, of labels.Set) wait {
	var w wait
	var parallel int32
	var serial, side []called
	for _, c := range webhooks {
		switch {
		case !c.selector.Matches(of):
		case c.Mutating:
			serial = append(serial, c)
		default:
			side = append(side, c)
			parallel = max(parallel, c.TimeoutSeconds)
		}
	}
	for _, c := range serial {
		w.seconds += c.TimeoutSeconds
		text := fmt.Sprintf("%s %d s", c.Name, c.TimeoutSeconds)
		if c.Reinvoked && len(serial) > 1 { // another mutator can make the API server ask again
			w.seconds += c.TimeoutSeconds
			text = fmt.Sprintf("%s twice %d s", c.Name, c.TimeoutSeconds)
		}
		w.called = append(w.called, text)
	}
	slices.SortFunc(side, func(a, b called) int {
		return cmp.Or(cmp.Compare(b.TimeoutSeconds, a.TimeoutSeconds), strings.Compare(a.Name, b.Name))
	})
	if len(side) > 0 {
		w.called = append(w.called, fmt.Sprintf("%s %d s", side[0].Name, parallel))
	}
	w.seconds += parallel
	return w
}
