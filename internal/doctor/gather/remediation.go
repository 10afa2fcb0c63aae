// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// evidenceKeys is the key of the ConfigMap that the executor fills in.
const evidenceKeys = "keys.pem"

// remediation reads what does not depend on where Plumbline is installed.
func (r *reader) remediation(ctx context.Context) {
	out := &r.snapshot.Remediation
	out.Policies = r.remediationPolicies(ctx)
	out.Environments = r.environments(ctx)
	out.Plans = r.plans(ctx)
	out.Unanswered = r.unanswered(ctx)
}

// unanswered finds, of each component, the assessment that has told of it last, and keeps those without an answer.
func (r *reader) unanswered(ctx context.Context) doctor.Read[[]doctor.Unanswered] {
	type look struct {
		doctor.Unanswered
		answered bool
	}
	newest := map[v1alpha1.EffectComponent]look{}
	list := &v1alpha1.EffectivenessAssessmentList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			a := &list.Items[i]
			for _, c := range a.Status.Components {
				asked := a.Status.AskedTime
				if asked == nil || c.State == v1alpha1.ComponentNotConfigured || !asked.After(newest[c.Name].Time) {
					continue
				}
				newest[c.Name] = look{doctor.Unanswered{Component: c.Name, Namespace: a.Namespace, Assessment: a.Name, Message: c.Message, Time: asked.Time}, c.State == v1alpha1.ComponentAssessed}
			}
		}
	})
	var out []doctor.Unanswered
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		if !newest[name].answered {
			out = append(out, newest[name].Unanswered)
		}
	}
	return result(out, "list effectivenessassessments.plumbline.dev", err)
}

// executor reads what only an installation has.
func (r *reader) executor(ctx context.Context) {
	s := r.snapshot
	out := &s.Remediation
	out.Ledgers = r.ledgers(ctx)
	lease := &coordinationv1.Lease{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: doctor.ExecutorName}, lease)
	out.Lease = result(leaseOf(lease), "get leases in namespace "+s.Namespace, err)
	keys := &corev1.ConfigMap{}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: doctor.EvidenceName}, keys)
	out.PublicKeys = result(keys.Data[evidenceKeys], "get configmaps in namespace "+s.Namespace, err)
}

func (r *reader) remediationPolicies(ctx context.Context) doctor.Read[[]v1alpha1.RemediationPolicy] {
	var out []v1alpha1.RemediationPolicy
	list := &v1alpha1.RemediationPolicyList{}
	err := r.pages(ctx, list, func() { out = append(out, list.Items...) })
	return result(out, "list remediationpolicies.plumbline.dev", err)
}

// environments says of each which namespaces are its own, as the assessor does.
func (r *reader) environments(ctx context.Context) doctor.Read[[]doctor.Environment] {
	var all []*v1alpha1.Environment
	list := &v1alpha1.EnvironmentList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			all = append(all, list.Items[i].DeepCopy())
		}
	})
	namespaces := map[string]labels.Set{}
	for name, set := range r.snapshot.Namespaces.Value {
		namespaces[name] = set
	}
	assigned := environment.Assign(all, namespaces)
	var out []doctor.Environment
	for _, e := range all {
		out = append(out, doctor.Environment{Name: e.Name, Namespaces: assigned.Share[e.Name].Namespaces, Ledger: e.Status.LedgerUID})
	}
	return result(out, "list environments.plumbline.dev", err)
}

func (r *reader) plans(ctx context.Context) doctor.Read[doctor.Plans] {
	var out doctor.Plans
	list := &v1alpha1.RemediationPlanList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			out.Add(&list.Items[i])
		}
	})
	return result(out, "list remediationplans.plumbline.dev", err)
}

// ledgers leaves out what was granted, of which there may be a thousand entries.
func (r *reader) ledgers(ctx context.Context) doctor.Read[[]v1alpha1.RemediationLedger] {
	var out []v1alpha1.RemediationLedger
	list := &v1alpha1.RemediationLedgerList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			list.Items[i].Status.Entries = nil
			out = append(out, list.Items[i])
		}
	}, client.InNamespace(r.snapshot.Namespace))
	return result(out, "list remediationledgers.plumbline.dev in namespace "+r.snapshot.Namespace, err)
}

// records asks a replica of the executor for its records, by the name of a chain
// that nothing has. Only a missing right leaves the question open: whoever has
// them served wants them reached in this way.
func (r *reader) records(ctx context.Context, pod string, port int32) doctor.Read[struct{}] {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	namespace := r.snapshot.Namespace
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy%s", namespace, pod, port, evidencehttp.Prefix)
	err := r.raw.Get().AbsPath(path).Param("chain", "no-such-chain").Do(ctx).Error()
	if err != nil && !apierrors.IsForbidden(err) {
		return doctor.Read[struct{}]{Reason: err.Error()}
	}
	return result(struct{}{}, "get pods/proxy in namespace "+namespace, err)
}

// forger is in whose name the forged objects are.
const forger = "plumbline-doctor:nobody"

// forgeries are writes of the kinds of remediation that no user may do, each
// against the policy that has to refuse it.
func (r *reader) forgeries(ctx context.Context, namespace string) []doctor.Forgery {
	s := r.snapshot
	base := "/apis/" + v1alpha1.GroupVersion.String()
	try := func(policy, what, path string, object map[string]any) doctor.Forgery {
		_, outcome := r.create(ctx, base+path, object)
		return doctor.Forgery{Policy: policy, What: what, Read: outcome}
	}
	out := []doctor.Forgery{
		try("plumbline-policy-writers", "an active RemediationPolicy that your user made in another user's name", "/remediationpolicies", forgedPolicy()),
		try("plumbline-plan-writers", "a RemediationPlan that your user made in another user's name", "/namespaces/"+namespace+"/remediationplans", forgedPlan(namespace, s.Now)),
		try("plumbline-request-writers", "a RemediationRequest that your user made in the name of another user", "/namespaces/"+namespace+"/remediationrequests", forgedRequest(namespace)),
		try("plumbline-assessment-writers", "an EffectivenessAssessment that your user made", "/namespaces/"+namespace+"/effectivenessassessments", forgedAssessment(namespace)),
	}
	if s.Namespace != "" {
		out = append(out, try("plumbline-ledger-writers", "a RemediationLedger that your user made", "/namespaces/"+s.Namespace+"/remediationledgers", ours("RemediationLedger", s.Namespace, map[string]any{"scope": "Environment"})))
	}
	if len(s.Remediation.Environments.Value) > 0 {
		name := s.Remediation.Environments.Value[0].Name
		outcome := r.mark(ctx, base+"/environments/"+name+"/status")
		out = append(out, doctor.Forgery{Policy: "plumbline-executor-marks", What: "a write by your user of the ledger that Environment " + name + " remembers", Read: outcome})
	}
	return out
}

func ours(kind, namespace string, spec map[string]any) map[string]any {
	metadata := map[string]any{"name": doctor.ProbeName}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec}
}

func forgedPolicy() map[string]any {
	return ours("RemediationPolicy", "", map[string]any{
		"environmentName": doctor.ProbeName, "mode": "Active", "requestedBy": forger, "trigger": "Manual", "action": "NotifyOnly",
	})
}

func forgedRequest(namespace string) map[string]any {
	return ours("RemediationRequest", namespace, map[string]any{
		"policyName": doctor.ProbeName, "requestedBy": forger,
		"targets": []any{map[string]any{"baselineName": doctor.ProbeName, "driftedHash": "none"}},
	})
}

func forgedAssessment(namespace string) map[string]any {
	return ours("EffectivenessAssessment", namespace, map[string]any{
		"subject": map[string]any{"plan": map[string]any{"name": doctor.ProbeName, "uid": doctor.ProbeName, "step": 0}},
		"policy":  map[string]any{"name": doctor.ProbeName, "uid": doctor.ProbeName}, "correlationID": doctor.ProbeName, "requestedBy": forger,
		"action": "NotifyOnly", "execution": "NoExecution", "driftTime": "2026-01-01T00:00:00Z",
		"target":  map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": doctor.ProbeName, "baselineName": doctor.ProbeName},
		"signal":  map[string]any{"kind": "Deployment", "name": doctor.ProbeName},
		"windows": map[string]any{"stabilization": "30s", "validity": "30m"},
	})
}

func forgedPlan(namespace string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	return ours("RemediationPlan", namespace, map[string]any{"plan": map[string]any{
		"policy":          map[string]any{"name": doctor.ProbeName, "uid": doctor.ProbeName, "generation": 1, "digest": "none"},
		"environmentName": doctor.ProbeName, "trigger": "Manual", "strategy": "Rolling", "correlationID": doctor.ProbeName,
		"initiatedBy": "system:auto", "requester": forger, "deadlineTime": at,
		"targets": []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "name": doctor.ProbeName, "baselineName": doctor.ProbeName,
			"driftedHash": "none", "desiredHash": "none", "revision": "none", "revisionHash": "none", "action": "NotifyOnly", "driftType": "Other",
			"severity":      map[string]any{"level": "Info", "score": 0},
			"firstSeenTime": at,
		}},
		"batches": []any{map[string]any{"order": 0, "steps": []any{0}, "requiresHealthCheck": "Enabled"}},
	}})
}
