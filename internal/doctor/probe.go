// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// ProbeName is the name of what probes create; it is never stored.
const ProbeName = "plumbline-doctor"

// Plan is a write worth trying.
type Plan struct {
	Namespace string
	Kind      schema.GroupVersionKind
	Labels    map[string]string
	// Guard selects the object; empty when no guard does.
	Guard string
	// Trusted: the guard trusts the user who asks.
	Trusted bool
}

func (p Plan) object() string { return p.Kind.Kind + "/" + p.Namespace + "/" + ProbeName }

// Outcome is what became of a write that was tried.
type Outcome struct {
	Refused bool
	// By names the policy that refused it, if one did.
	By      string
	Message string
}

// Written is what became of a write that should come back stamped.
type Written struct {
	Outcome
	Writer string
	// Hash is the stamp, WantHash what the object hashes to.
	Hash, WantHash string
	Took           time.Duration
	// Reviews counts what the webhook's replicas answered before and after.
	ReviewsBefore, ReviewsAfter Read[float64]
}

// Probes are real writes as dry runs: admission runs in full, nothing is stored.
type Probes struct {
	Plan     Plan
	Write    Read[Written]
	DenyPlan Plan
	Deny     Read[Outcome]
	// Baseline is the create of a Baseline, which only the assessor may do.
	Baseline Read[Outcome]
	// Forgeries are writes of the kinds of remediation that nobody may do.
	Forgeries []Forgery
}

// stamped: a write has come back with the webhook's hash.
func (s *Snapshot) stamped() bool {
	return s.Probes.Write.present() && s.Probes.Write.Value.Hash != ""
}

// probeKinds are the kinds that a probe can make, those first that clusters guard most.
var probeKinds = []struct {
	schema.GroupVersionKind
	resource string
}{
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments"},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets"},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, "daemonsets"},
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "cronjobs"},
}

// registeredKinds are those of them that the installation is registered for: of
// the others a write comes back as it was sent. Where that cannot be read, all.
func (s *Snapshot) registeredKinds() []schema.GroupVersionKind {
	registered := s.registered()
	var out []schema.GroupVersionKind
	for _, kind := range probeKinds {
		if !s.Webhooks.known() || slices.Contains(registered, target{kind.Group, kind.resource}) {
			out = append(out, kind.GroupVersionKind)
		}
	}
	return out
}

// ResourceOf is the plural of a plan's kind.
func (p Plan) ResourceOf() string {
	for _, kind := range probeKinds {
		if kind.GroupVersionKind == p.Kind {
			return kind.resource
		}
	}
	return ""
}

// PlanWrite picks a write that a guard sees and does not deny, in the namespace
// asked for or, if that is empty, wherever a guard is. Without such a guard it
// is an object that none selects. ok is false when no kind is registered that a
// probe can make.
func PlanWrite(s *Snapshot, namespace string) (plan Plan, ok bool) {
	kinds := s.registeredKinds()
	for _, kind := range kinds {
		for i := range s.Guards.Value {
			g := &s.Guards.Value[i]
			if g.Spec.Mode == v1alpha1.GuardModeDeny || g.suspended(s) {
				continue
			}
			plan, ok := s.planFor(g, kind, namespace)
			if ok && !s.denies(plan) {
				return plan, true
			}
		}
	}
	if len(kinds) == 0 {
		return Plan{}, false
	}
	return Plan{Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Kind: kinds[0]}, true
}

// PlanDeny picks a write that a guard in mode Deny has to refuse; ok is false
// when there is none that a probe can make.
func PlanDeny(s *Snapshot) (plan Plan, ok bool) {
	for _, g := range s.denying() {
		for _, kind := range s.registeredKinds() {
			if plan, ok := s.planFor(g, kind, ""); ok {
				return plan, true
			}
		}
	}
	return Plan{}, false
}

func (s *Snapshot) planFor(g *Guard, kind schema.GroupVersionKind, namespace string) (Plan, bool) {
	if !g.names(kind) {
		return Plan{}, false
	}
	labels, ok := satisfy(g.Spec.Selector)
	if !ok {
		return Plan{}, false
	}
	candidates := s.namespacesOf(g)
	if namespace != "" {
		candidates = slices.DeleteFunc(candidates, func(name string) bool { return name != namespace })
	}
	if len(candidates) == 0 {
		return Plan{}, false
	}
	return Plan{
		Namespace: candidates[0], Kind: kind, Labels: labels, Guard: g.ID(),
		Trusted: s.User.present() && trusts(g.Spec.TrustedWriters, s.User.Value),
	}, true
}

func (g *Guard) names(kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(specguard.ListResources(&g.Spec), func(r specguard.NamedResource) bool {
		version, err := schema.ParseGroupVersion(r.APIVersion)
		return err == nil && version.Group == kind.Group && r.Kind == kind.Kind
	})
}

// namespacesOf are those that a guard covers, sorted; left out are excluded ones,
// and those that are being deleted.
func (s *Snapshot) namespacesOf(g *Guard) []string {
	excluded := specguard.ExcludedNamespaces(s.Namespace)
	all := s.Namespaces.Value
	if g.Namespace != "" {
		return slices.DeleteFunc([]string{g.Namespace}, func(name string) bool {
			_, there := all[name]
			return slices.Contains(excluded, name) || s.Namespaces.present() && !there
		})
	}
	if !s.Namespaces.present() {
		all = map[string]map[string]string{metav1.NamespaceDefault: s.namespaceLabels(metav1.NamespaceDefault)}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(excluded, name) && selects(g.NamespaceSelector, all[name]) {
			out = append(out, name)
		}
	}
	return out
}

// denies tells whether some guard in mode Deny would refuse a plan.
func (s *Snapshot) denies(plan Plan) bool {
	return slices.ContainsFunc(s.denying(), func(g *Guard) bool {
		return g.names(plan.Kind) && slices.Contains(s.namespacesOf(g), plan.Namespace)
	})
}

// satisfy makes up labels that a selector takes.
func satisfy(selector *metav1.LabelSelector) (map[string]string, bool) {
	labels := map[string]string{}
	if selector == nil {
		return labels, true
	}
	maps.Copy(labels, selector.MatchLabels)
	for _, e := range selector.MatchExpressions {
		if _, set := labels[e.Key]; set {
			continue
		}
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			if len(e.Values) > 0 {
				labels[e.Key] = e.Values[0]
			}
		case metav1.LabelSelectorOpExists:
			labels[e.Key] = "true"
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist:
		}
	}
	return labels, selects(selector, labels)
}

// trusts follows the guard's own rule: any entry that matches is enough.
func trusts(w v1alpha1.Writers, u User) bool {
	if slices.Contains(w.Users, u.Name) || slices.ContainsFunc(w.Groups, func(g string) bool { return slices.Contains(u.Groups, g) }) {
		return true
	}
	account, ok := strings.CutPrefix(u.Name, "system:serviceaccount:")
	namespace, name, found := strings.Cut(account, ":")
	if !ok || !found {
		return false
	}
	return slices.Contains(w.ServiceAccountNamespaces, namespace) ||
		slices.Contains(w.ServiceAccounts, v1alpha1.ServiceAccountReference{Namespace: namespace, Name: name})
}

// Object is the body of a plan: valid, and made so that nothing would run.
func (p Plan) Object() map[string]any {
	labels := map[string]string{"app.kubernetes.io/name": ProbeName}
	maps.Copy(labels, p.Labels)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "registry.k8s.io/pause:3.10"}}},
	}
	selector := map[string]any{"matchLabels": labels}
	spec := map[string]any{"selector": selector, "template": template}
	switch p.Kind.Kind {
	case "CronJob":
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		spec = map[string]any{"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	case "StatefulSet":
		spec["serviceName"], spec["replicas"] = ProbeName, 0
	case "Deployment":
		spec["replicas"] = 0
	}
	return map[string]any{
		"apiVersion": p.Kind.GroupVersion().String(), "kind": p.Kind.Kind,
		"metadata": map[string]any{"name": ProbeName, "namespace": p.Namespace, "labels": labels},
		"spec":     spec,
	}
}

const unreachableFix = "look at the pods, the endpoints and the way from the control plane to port 10250 of the pods:\n" +
	"kubectl get pods,endpointslices -n plumbline-system -o wide\n" +
	"on a private cluster open that port to the control plane, or set webhook.port to one that is open"

// checkReachable looks at what came back from a real write.
func checkReachable(s *Snapshot) []Finding {
	probe, plan := s.Probes.Write, s.Probes.Plan
	if !probe.present() {
		return []Finding{probe.unknown("whether the API server reaches the webhook, by a dry-run write in namespace " + plan.Namespace)}
	}
	w := probe.Value
	switch {
	case w.Refused:
		return []Finding{{Severity: Unknown, Object: plan.object(), Message: "cannot tell whether the API server reaches the webhook: the dry-run write was refused: " + w.Message}}
	case plan.Guard == "":
		return reachedWithoutGuard(w, plan)
	case w.Hash == "":
		return []Finding{{Severity: Critical, Object: plan.object(), Fix: unreachableFix,
			Message: fmt.Sprintf("a dry-run write that %s guards came back after %s without %s: the API server does not reach the webhook, or skips it", plan.Guard, w.Took.Round(time.Millisecond), v1alpha1.AnnotationSpecHash)}}
	case w.Hash != w.WantHash:
		return []Finding{{Severity: Warning, Object: plan.object(), Fix: "find the mutating webhook that changes it: kubectl get mutatingwebhookconfigurations",
			Message: fmt.Sprintf("a dry-run write came back with hash %s and hashes to %s: another webhook changes the object afterwards", w.Hash, w.WantHash)}}
	default:
		return nil
	}
}

// reachedWithoutGuard: an object that nobody guards gets no stamp, but the
// webhook is asked about it and counts.
func reachedWithoutGuard(w Written, plan Plan) []Finding {
	before, after := w.ReviewsBefore, w.ReviewsAfter
	switch {
	case before.present() && after.present() && after.Value > before.Value:
		return []Finding{{Severity: OK, Object: plan.object(), Message: "the webhook was asked about a dry-run write (no guard selects anything to be stamped yet)"}}
	case before.present() && after.present():
		return []Finding{{Severity: Critical, Object: plan.object(), Fix: unreachableFix, Message: "no replica of the webhook was asked about a dry-run write: the API server does not reach it"}}
	default:
		return []Finding{{Severity: Unknown, Object: plan.object(), Fix: "make a guard, or run: helm test plumbline -n plumbline-system --logs",
			Message: "cannot tell whether the API server reaches the webhook: no guard selects anything that would be stamped, and the replicas' counts could not be read"}}
	}
}
