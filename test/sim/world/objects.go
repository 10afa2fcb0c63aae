// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// The names of the world.
const (
	namespace            = "shop"
	namespaceOfPlumbline = "plumbline-system"
	environment          = "production"
	policyName           = "images"
	guardName            = "all"
	requester            = "platform"
	// Executor is the user of the executors.
	Executor = "system:serviceaccount:" + namespaceOfPlumbline + ":plumbline-executor"

	group         = "plumbline.dev"
	imageDesired  = "shop:good"
	imageDrifted  = "shop:bad"
	imageElsewise = "shop:other"
)

var deployments = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// kinds are those of the simulated server.
func kinds() []apiserver.Resource {
	all := apiserver.Builtin()
	for _, r := range []struct {
		resource, kind string
		namespaced     bool
	}{
		{"environments", "Environment", false}, {"clusterspecguards", "ClusterSpecGuard", false}, {"specguards", "SpecGuard", true},
		{"guarddefaults", "GuardDefaults", false}, {"baselines", "Baseline", true}, {"baselinerevisions", "BaselineRevision", true},
		{"remediationpolicies", "RemediationPolicy", false}, {"remediationplans", "RemediationPlan", true},
		{"remediationledgers", "RemediationLedger", true},
	} {
		all = append(all, apiserver.Custom(group, "v1alpha1", r.resource, r.kind, r.namespaced))
	}
	return all
}

// object turns a typed object into JSON.
func object(o any) apiserver.Object {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var out apiserver.Object
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// typed turns JSON into a typed object.
func typed[T any](o apiserver.Object) *T {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		panic(fmt.Sprintf("reading a %T: %v", out, err))
	}
	return out
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// store puts an object into the world before anything happens, and returns its uid.
func (w *World) store(group, version, resource, namespace string, o any) types.UID {
	stored, err := w.Server.Apply(group, version, resource, namespace, object(o))
	if err != nil {
		panic(err)
	}
	return types.UID(stored["metadata"].(map[string]any)["uid"].(string))
}

func (w *World) storeOwn(resource, namespace string, o any) types.UID {
	return w.store(group, "v1alpha1", resource, namespace, o)
}

// deploymentSpec is a spec with an image and replicas.
func deploymentSpec(image string, replicas int64) apiserver.Object {
	labels := map[string]any{"app": "web"}
	return apiserver.Object{
		"replicas": replicas, "progressDeadlineSeconds": int64(600),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}},
		},
	}
}

func deployment(name string, spec apiserver.Object) apiserver.Object {
	return apiserver.Object{
		"kind": "Deployment", "apiVersion": "apps/v1", "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"app": "web"}},
	}
}

// rules are what the guard of the world says of its Deployments.
func rules(now time.Time) specguard.Rules {
	g, errs := specguard.Compile(specguard.GuardRef{Name: guardName}, guard().Spec.GuardSpec, nil, now)
	if len(errs) > 0 {
		panic(errs.ToAggregate())
	}
	set := specguard.NewGuardSet([]*specguard.Guard{g}, specguard.ExcludedNamespaces(namespaceOfPlumbline), specguard.System{Executor: Executor})
	return set.Rules(specguard.Query{Namespace: namespace, GVK: deployments, Labels: []map[string]string{{"app": "web"}}, Now: now})
}

func guard() *v1alpha1.ClusterSpecGuard {
	return &v1alpha1.ClusterSpecGuard{
		TypeMeta: typeMeta("ClusterSpecGuard"), ObjectMeta: metav1.ObjectMeta{Name: guardName},
		Spec: v1alpha1.ClusterGuardSpec{GuardSpec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Mode:      v1alpha1.GuardModeAudit, ManagementPolicy: v1alpha1.Managed, ObjectOverride: v1alpha1.ObjectOverrideForbidden,
		}},
	}
}

// target is a Deployment of the world, with its hashes.
type target struct {
	name, baseline, revision string
	uid                      types.UID
	// desired and drifted specs, and their guarded hashes.
	desired, drifted         apiserver.Object
	desiredHash, driftedHash string
}

// addTarget stores a Deployment that drifted, what was authorised of it, and its
// Baseline. One that is gone is not stored.
func (w *World) addTarget(name string, drifted apiserver.Object, gone bool) *target {
	now := metav1.NewTime(w.epoch)
	t := &target{name: name, baseline: specguard.BaselineName("deployments", "apps", name), desired: deploymentSpec(imageDesired, 2), drifted: drifted}
	t.revision = specguard.RevisionName(t.baseline, 1)
	body, err := json.Marshal(apiserver.Object{"spec": t.desired})
	if err != nil {
		panic(err)
	}
	t.desiredHash = hashOf(t.desired, t.desired, w.rules)
	t.driftedHash = hashOf(drifted, t.desired, w.rules)
	if gone {
		t.driftedHash = specguard.HashAbsent
	} else {
		t.uid = w.store("apps", "v1", "deployments", namespace, deployment(name, drifted))
	}
	w.storeOwn("baselinerevisions", namespace, &v1alpha1.BaselineRevision{
		TypeMeta: typeMeta("BaselineRevision"), ObjectMeta: metav1.ObjectMeta{Name: t.revision, Namespace: namespace},
		Spec: v1alpha1.BaselineRevisionSpec{
			Baseline: t.baseline, Number: 1, Hash: t.desiredHash, By: "ci", At: now,
			Encoding: v1alpha1.BodyEncodingZstd, Body: kube.Compress(body), Size: int64(len(body)),
		},
	})
	w.storeOwn("baselines", namespace, &v1alpha1.Baseline{
		TypeMeta: typeMeta("Baseline"), ObjectMeta: metav1.ObjectMeta{Name: t.baseline, Namespace: namespace},
		Spec: v1alpha1.BaselineSpec{
			Target:     v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorised: &v1alpha1.AuthorisedState{UID: string(t.uid), Hash: t.desiredHash, Revision: t.revision, Number: 1, By: "ci", At: now, Origin: v1alpha1.OriginCreated},
		},
		Status: v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, Guards: []string{"ClusterSpecGuard/" + guardName}, FirstSeen: &now},
	})
	return t
}

func hashOf(spec, authorised apiserver.Object, rules specguard.Rules) string {
	encode := func(spec apiserver.Object) []byte {
		raw, err := json.Marshal(apiserver.Object{"spec": spec})
		if err != nil {
			panic(err)
		}
		return raw
	}
	hash, err := specguard.ObservedHash(encode(spec), encode(authorised), deployments, rules, nil)
	if err != nil {
		panic(err)
	}
	return string(hash)
}

// plan is one of the world.
func (w *World) addPlan(name string, action v1alpha1.RemediationAction, batches [][]int32, targets []*target) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{TypeMeta: typeMeta("RemediationPlan"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	planned := &p.Spec.Plan
	*planned = v1alpha1.PlannedRemediation{
		Policy:      v1alpha1.PlanPolicy{Name: policyName, UID: string(w.policyUID), Generation: 1, Digest: planner.Digest(&w.policy.Spec)},
		Environment: environment, Trigger: v1alpha1.TriggerImmediate, Strategy: v1alpha1.StrategyRolling,
		InitiatedBy: "system:auto", Requester: requester, CorrelationID: "sim-" + name,
		Deadline: metav1.NewTime(w.epoch.Add(w.deadline)),
	}
	for order, steps := range batches {
		planned.Batches = append(planned.Batches, v1alpha1.PlanBatch{Order: int32(order), Steps: steps, RequiresHealthCheck: v1alpha1.Enabled}) //nolint:gosec // few
	}
	for _, t := range targets {
		desired := t.desiredHash
		if action == v1alpha1.ActionRestart {
			desired = t.driftedHash
		}
		planned.Targets = append(planned.Targets, v1alpha1.PlanTarget{
			BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: t.name},
			Baseline:       t.baseline, UID: string(t.uid), DriftedHash: t.driftedHash, DesiredHash: desired,
			Revision: t.revision, RevisionHash: t.desiredHash, Paths: []string{"/spec"}, Action: action,
			Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70}, DriftType: v1alpha1.DriftDigestMismatch,
			FirstSeen: metav1.NewTime(w.epoch),
		})
	}
	p.UID = w.storeOwn("remediationplans", namespace, p)
	return p
}
