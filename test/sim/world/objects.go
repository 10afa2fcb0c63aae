// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
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
	imageNewer    = "shop:newer"
)

// kinds are those of the simulated server.
func kinds() []apiserver.Resource {
	all := append(apiserver.Builtin(), meshKinds()...)
	for _, r := range []struct {
		resource, kind string
		namespaced     bool
	}{
		{"environments", "Environment", false}, {"clusterspecguards", "ClusterSpecGuard", false}, {"specguards", "SpecGuard", true},
		{"specguardexceptions", "SpecGuardException", true},
		{"guarddefaults", "GuardDefaults", false}, {"baselines", "Baseline", true}, {"baselinerevisions", "BaselineRevision", true},
		{"remediationpolicies", "RemediationPolicy", false}, {"remediationplans", "RemediationPlan", true},
		{"remediationledgers", "RemediationLedger", true}, {"effectivenessassessments", "EffectivenessAssessment", true},
		{"abreleases", "ABRelease", true},
	} {
		all = append(all, apiserver.Custom(group, "v1alpha1", r.resource, r.kind, r.namespaced))
	}
	return all
}

// encode turns anything into JSON.
func encode(o any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return raw
}

// object turns a typed object into JSON.
func object(o any) apiserver.Object {
	raw := encode(o)
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

// read is an object that was read as a typed one.
type read struct {
	object apiserver.Object // it keeps its place, so that no other has it
	typed  any
}

// typedOf is an object of the server, turned once. Nobody may change it.
func typedOf[T any](w *World, o apiserver.Object) *T {
	place := reflect.ValueOf(o).Pointer()
	w.readMu.Lock()
	defer w.readMu.Unlock()
	if known, ok := w.read[place].typed.(*T); ok {
		return known
	}
	t := typed[T](o)
	w.read[place] = read{o, t}
	return t
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

func guard() *v1alpha1.ClusterSpecGuard {
	return &v1alpha1.ClusterSpecGuard{
		TypeMeta: typeMeta("ClusterSpecGuard"), ObjectMeta: metav1.ObjectMeta{Name: guardName},
		Spec: v1alpha1.ClusterGuardSpec{GuardSpec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "Service"}},
			Mode:      v1alpha1.GuardModeAudit, ManagementPolicy: v1alpha1.Managed, ObjectOverride: v1alpha1.ObjectOverrideForbidden,
		}},
	}
}

// target is an object of the world, with its hashes.
type target struct {
	*kind
	shape
	name, baseline, revision string
	// later is the revision of a state that may be authorized while a plan is under way.
	later string
	uid   types.UID
	// The guarded hashes of what it should be and of what it is.
	desiredHash, driftedHash string
}

// at is where it is.
func (t *target) at() string { return t.path + "/" + t.name }

// addTarget stores an object that drifted, what was authorized of it, and its
// Baseline. One that is gone is not stored.
func (w *World) addTarget(name string, k *kind, s shape) *target {
	t := &target{kind: k, shape: s, name: name, baseline: specguard.BaselineName(k.resource, k.gvk.Group, name)}
	t.revision = specguard.RevisionName(t.baseline, 1)
	t.desiredHash, t.driftedHash = w.hashOf(t, s.desired), w.hashOf(t, s.drifted)
	observed := v1alpha1.ObservedState{Hash: t.driftedHash}
	is := v1alpha1.StateDrifted
	switch {
	case s.inSync:
		o := k.object(name, s.desired)
		if k == &deployments {
			metadata(o)["generation"] = int64(1)
			ready(o)
		}
		t.uid = w.store(k.gvk.Group, k.gvk.Version, k.resource, namespace, o)
		observed.Hash, is = t.desiredHash, v1alpha1.StateInSync
	case s.gone:
		t.driftedHash = specguard.HashAbsent
		observed.Hash = t.driftedHash
	default:
		t.uid = w.store(k.gvk.Group, k.gvk.Version, k.resource, namespace, k.object(name, s.drifted))
	}
	observed.UID = string(t.uid)
	authorized := w.authorize(t, s.desired, 1)
	status := v1alpha1.BaselineStatus{Observed: observed, State: is, Guards: []string{"ClusterSpecGuard/" + guardName}, FirstSeenTime: &metav1.Time{Time: w.epoch}}
	if s.inSync {
		status.FirstSeenTime = nil
	}
	if s.newer != nil {
		status.LastReady = &v1alpha1.ReadyRevision{Revision: t.revision, Hash: t.desiredHash, ReadyTime: authorized.AuthorizationTime}
		authorized = w.authorize(t, s.newer, 2)
	}
	t.later = w.authorize(t, s.other, laterNumber).Revision
	w.storeOwn("baselines", namespace, &v1alpha1.Baseline{
		TypeMeta: typeMeta("Baseline"), ObjectMeta: metav1.ObjectMeta{Name: t.baseline, Namespace: namespace},
		Spec: v1alpha1.BaselineSpec{
			Target:     v1alpha1.BaselineTarget{APIVersion: k.apiVersion(), Kind: k.gvk.Kind, Name: name},
			Authorized: authorized,
		},
		Status: status,
	})
	return t
}

// laterNumber is the number of the revision that may be authorized while a plan is under way.
const laterNumber = 3

// authorize stores a revision of a target.
func (w *World) authorize(t *target, spec apiserver.Object, number int64) *v1alpha1.AuthorizedState {
	body, err := json.Marshal(apiserver.Object{"spec": spec})
	if err != nil {
		panic(err)
	}
	state := &v1alpha1.AuthorizedState{
		UID: string(t.uid), Hash: w.hashOf(t, spec), Revision: specguard.RevisionName(t.baseline, number), Number: number,
		By: "ci", AuthorizationTime: metav1.NewTime(w.epoch.Add(-w.authorizedFor)), Origin: v1alpha1.OriginCreated,
	}
	w.storeOwn("baselinerevisions", namespace, storedRevision(t, number, state.Hash, state.By, state.AuthorizationTime, body))
	return state
}

// storedRevision keeps what was authorized of a target.
func storedRevision(t *target, number int64, hash, by string, at metav1.Time, body []byte) *v1alpha1.BaselineRevision {
	return &v1alpha1.BaselineRevision{
		TypeMeta: typeMeta("BaselineRevision"), ObjectMeta: metav1.ObjectMeta{Name: specguard.RevisionName(t.baseline, number), Namespace: namespace},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: t.baseline, Number: number, Hash: hash, By: by, AuthorizationTime: at,
			Encoding: v1alpha1.BodyEncodingZstd, Body: kube.Compress(body), Size: int64(len(body)),
		},
	}
}

// hashOf is the guarded hash of a spec of a target.
func (w *World) hashOf(t *target, spec apiserver.Object) string {
	encode := func(spec apiserver.Object) []byte {
		raw, err := json.Marshal(apiserver.Object{"spec": spec})
		if err != nil {
			panic(err)
		}
		return raw
	}
	hash, err := specguard.ObservedHash(encode(spec), encode(t.desired), t.gvk, w.rules, nil)
	if err != nil {
		panic(err)
	}
	return string(hash)
}

// plan is one of the world.
func (w *World) addPlan(name string, action v1alpha1.RemediationAction, batches [][]int32, targets []*target, begins beginning) {
	p := &v1alpha1.RemediationPlan{TypeMeta: typeMeta("RemediationPlan"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	planned := &p.Spec.Plan
	*planned = v1alpha1.PlannedRemediation{
		Policy:          v1alpha1.PlanPolicy{Name: policyName, UID: string(w.policyUID), Generation: 1, Digest: planner.Digest(&w.policy.Spec)},
		EnvironmentName: environment, Trigger: v1alpha1.TriggerImmediate, Strategy: w.policy.Spec.Strategy, Standby: w.policy.Spec.Standby.DeepCopy(),
		InitiatedBy: "system:auto", Requester: requester, CorrelationID: "sim-" + name,
		DeadlineTime: metav1.NewTime(w.epoch.Add(w.deadline)),
	}
	for order, steps := range batches {
		batch := v1alpha1.PlanBatch{Order: int32(order), Steps: steps, RequiresHealthCheck: v1alpha1.Enabled} //nolint:gosec // few
		if w.delay > 0 {
			batch.DelayAfter = &metav1.Duration{Duration: w.delay}
		}
		planned.Batches = append(planned.Batches, batch)
	}
	planned.Trigger, planned.ScheduledTime = begins.trigger, begins.at
	for _, t := range targets {
		desired := t.desiredHash
		if action == v1alpha1.ActionRestart || action == v1alpha1.ActionQuarantine {
			desired = t.driftedHash
		}
		planned.Targets = append(planned.Targets, v1alpha1.PlanTarget{
			BaselineTarget: v1alpha1.BaselineTarget{APIVersion: t.apiVersion(), Kind: t.gvk.Kind, Name: t.name},
			BaselineName:   t.baseline, UID: string(t.uid), DriftedHash: t.driftedHash, DesiredHash: desired,
			Revision: t.revision, RevisionHash: t.desiredHash, Paths: []string{"/spec"}, Action: action,
			Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70}, DriftType: v1alpha1.DriftImage,
			FirstSeenTime: metav1.NewTime(w.epoch),
		})
	}
	w.storeOwn("remediationplans", namespace, p)
}
