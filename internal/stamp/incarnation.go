// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// Incarnation is one life of the policy and its binding: deleted and made again, or
// changed in their specs, they are another one. What a policy stamped before it was
// changed says nothing of the kinds that the change added.
type Incarnation struct {
	// ID is empty while the policy or its binding is missing.
	ID string
	// Made is when the younger of the two was made or changed, by the API server's
	// clock. Where a spec never changed that is its creation, else the last change of
	// anything but the status.
	Made time.Time

	policy, binding life
	// rules are the resources that the policy matches.
	rules []admissionv1.NamedRuleWithOperations
	// rest is the spec of the policy without its rules.
	rest string
}

// life is one generation of one object.
type life struct {
	uid        string
	generation int64
}

func (l life) String() string { return l.uid + "." + strconv.FormatInt(l.generation, 10) }

// incarnationOf reads the incarnation from the two objects.
func incarnationOf(policy *admissionv1.MutatingAdmissionPolicy, binding metav1.Object) (Incarnation, error) {
	now := Incarnation{
		policy:  life{string(policy.UID), policy.Generation},
		binding: life{string(binding.GetUID()), binding.GetGeneration()},
		Made:    changedAt(policy),
	}
	now.ID = now.policy.String() + "/" + now.binding.String()
	if at := changedAt(binding); at.After(now.Made) {
		now.Made = at
	}
	spec := policy.Spec.DeepCopy()
	if spec.MatchConstraints != nil {
		now.rules, spec.MatchConstraints.ResourceRules = spec.MatchConstraints.ResourceRules, nil
	}
	rest, err := json.Marshal(spec)
	if err != nil {
		return Incarnation{}, fmt.Errorf("reading the policy %s: %w", Name, err)
	}
	now.rest = string(rest)
	return now, nil
}

// changedAt is no earlier than the last change of an object's spec.
func changedAt(o metav1.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	if o.GetGeneration() <= 1 {
		return at
	}
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil && entry.Subresource == "" && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// covers tells whether the policy stamps the objects of a kind.
func (i Incarnation) covers(resource kube.Resource) bool {
	for _, rule := range i.rules {
		if names(rule.APIGroups, resource.GVK.Group) && (names(rule.Resources, resource.Plural) || slices.Contains(rule.Resources, "*/*")) &&
			len(rule.ResourceNames) == 0 && operates(rule.Operations, admissionv1.Create) && operates(rule.Operations, admissionv1.Update) {
			return true
		}
	}
	return false
}

func names(list []string, name string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, name)
}

func operates(list []admissionv1.OperationType, operation admissionv1.OperationType) bool {
	return slices.Contains(list, admissionv1.OperationAll) || slices.Contains(list, operation)
}

// continues tells whether a kind was stamped without a break from an incarnation to
// the next one: exactly one change of the policy lies between them, the change is one
// of its rules, and both cover the kind. Each API server replaces the policy at once.
func (i Incarnation) continues(before Incarnation, resource kube.Resource) bool {
	return before.ID != "" && i.policy.uid == before.policy.uid && i.policy.generation == before.policy.generation+1 &&
		i.binding == before.binding && i.rest == before.rest && before.covers(resource) && i.covers(resource)
}
