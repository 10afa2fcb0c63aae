// SPDX-License-Identifier: Apache-2.0

package planningtest

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	// Epoch is now.
	Epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	// Deployments is the only kind that is guarded.
	Deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// Cluster is what is stored; a test changes it before it asks.
type Cluster struct {
	T           testing.TB
	Policy      *v1alpha1.RemediationPolicy
	Environment *v1alpha1.Environment
	Namespace   *corev1.Namespace
	Guard       *v1alpha1.SpecGuard
	// Baselines, Objects and Authorized are by the name of the Deployment.
	Baselines  map[string]*v1alpha1.Baseline
	Objects    map[string]*appsv1.Deployment
	Authorized map[string]*appsv1.Deployment
	Plans      []*v1alpha1.RemediationPlan
	// Further objects that are stored.
	Further []client.Object
}

// New has a guarded namespace with the Deployments web, which alice gave
// another image, and db and cache, which are as they should be and ready.
func New(t testing.TB) *Cluster {
	c := &Cluster{
		T: t,
		Policy: &v1alpha1.RemediationPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "auto", UID: "policy-uid", Generation: 2},
			Spec: v1alpha1.RemediationPolicySpec{
				EnvironmentName: "production", Mode: v1alpha1.PolicyModeActive, RequestedBy: "platform",
				Trigger: v1alpha1.TriggerImmediate, MinimumSeverity: v1alpha1.SeverityHigh, Action: v1alpha1.ActionReconcile,
			},
		},
		Environment: &v1alpha1.Environment{
			ObjectMeta: metav1.ObjectMeta{Name: "production"},
			Spec: v1alpha1.EnvironmentSpec{
				Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "production"}},
				Dependencies: []v1alpha1.ComponentDependencies{{Component: "web", DependsOn: []string{"db"}}},
			},
		},
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"tier": "production"}}},
		Guard: &v1alpha1.SpecGuard{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "workloads", CreationTimestamp: metav1.NewTime(Epoch.Add(-48 * time.Hour))},
			Spec:       v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}},
		},
		Baselines: map[string]*v1alpha1.Baseline{}, Objects: map[string]*appsv1.Deployment{}, Authorized: map[string]*appsv1.Deployment{},
	}
	for _, name := range []string{"web", "db", "cache"} {
		c.Add(name)
	}
	c.Drift("web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
	return c
}

// Add makes a Deployment that is as authorized, and ready.
func (c *Cluster) Add(name string) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 3, Labels: map[string]string{"app": name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:1"}}}},
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		},
	}
	c.Objects[name], c.Authorized[name] = d, d.DeepCopy()
	revision := specguard.RevisionName(c.BaselineName(name), 1)
	hash := string(c.Decode(d).FullHash)
	c.Baselines[name] = &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: c.BaselineName(name)},
		Spec: v1alpha1.BaselineSpec{
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorized: &v1alpha1.AuthorizedState{
				UID: string(d.UID), Hash: hash, Revision: revision, Number: 1, By: "ci", AuthorizationTime: metav1.NewTime(Epoch.Add(-time.Hour)), Origin: v1alpha1.OriginCreated,
			},
		},
		Status: v1alpha1.BaselineStatus{
			State: v1alpha1.StateInSync, Guards: []string{"SpecGuard/workloads"},
			Observed: v1alpha1.ObservedState{UID: string(d.UID), Hash: hash, FullHash: hash},
		},
	}
}

// Drift changes a Deployment as alice does, and its Baseline as the assessor does.
func (c *Cluster) Drift(name string, change func(*appsv1.Deployment)) {
	change(c.Objects[name])
	hash := string(c.Decode(c.Objects[name]).FullHash)
	status := &c.Baselines[name].Status
	status.State, status.Observed.Hash, status.Observed.FullHash = v1alpha1.StateDrifted, hash, hash
	first := metav1.NewTime(Epoch.Add(-20 * time.Minute))
	status.FirstSeenTime, status.FindingsTotal = &first, 1
	status.Findings = []v1alpha1.Finding{{
		Path: "/spec/template/spec/containers/[name=app]/image", Operation: v1alpha1.OperationChanged,
		Type: v1alpha1.DriftImage, Class: v1alpha1.ClassImageRepository, FirstSeenTime: first,
		Actor: v1alpha1.Actor{User: "alice", Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceWriterStamp},
	}}
	status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityCritical, Score: 70, Urgency: v1alpha1.UrgencyNormal}
}

// Gone removes a Deployment as alice does.
func (c *Cluster) Gone(name string) {
	c.Drift(name, func(*appsv1.Deployment) {})
	delete(c.Objects, name)
	status := &c.Baselines[name].Status
	status.State, status.Observed = v1alpha1.StateMissing, v1alpha1.ObservedState{Hash: specguard.HashAbsent}
	status.Findings[0].Path, status.Findings[0].Class, status.Findings[0].Type = "", v1alpha1.ClassObjectMissing, v1alpha1.DriftMissing
}

// Ended adds a plan of the policy for the drift of web that ended so.
func (c *Cluster) Ended(name string, phase v1alpha1.PlanPhase, state v1alpha1.StepState, reason v1alpha1.StepReason) *v1alpha1.RemediationPlan {
	b := c.Baselines["web"]
	p := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy: v1alpha1.PlanPolicy{Name: "auto", UID: "policy-uid", Digest: planner.Digest(&c.Policy.Spec)},
			Targets: []v1alpha1.PlanTarget{{
				BaselineName: b.Name, UID: b.Status.Observed.UID, DriftedHash: b.Status.Observed.Hash, FirstSeenTime: *b.Status.FirstSeenTime,
			}},
		}},
		Status: v1alpha1.RemediationPlanStatus{Phase: phase, Steps: []v1alpha1.PlanStep{{Index: 0, State: state, Reason: reason}}},
	}
	c.Plans = append(c.Plans, p)
	return p
}

// BaselineName is that of a Deployment.
func (c *Cluster) BaselineName(name string) string {
	return specguard.BaselineName("deployments", "apps", name)
}

func (c *Cluster) raw(d *appsv1.Deployment) []byte {
	c.T.Helper()
	full := d.DeepCopy()
	full.SetGroupVersionKind(Deployments)
	raw, err := json.Marshal(full)
	if err != nil {
		c.T.Fatal(err)
	}
	return raw
}

// Decode is a Deployment as the watch has it.
func (c *Cluster) Decode(d *appsv1.Deployment) *kube.Object {
	c.T.Helper()
	object, err := kube.Decode(c.raw(d), Deployments)
	if err != nil {
		c.T.Fatal(err)
	}
	return object
}

// revision is what is stored of the authorized state of a Deployment.
func (c *Cluster) revision(name string) *v1alpha1.BaselineRevision {
	c.T.Helper()
	doc, err := canon.Parse(c.raw(c.Authorized[name]), canon.GVK(Deployments))
	if err != nil {
		c.T.Fatal(err)
	}
	body := doc.AppendCanonical(nil)
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: specguard.RevisionName(c.BaselineName(name), 1)},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: c.BaselineName(name), Number: 1, Hash: string(c.Decode(c.Authorized[name]).FullHash), Body: kube.Compress(body), Size: int64(len(body)),
		},
	}
}

// Reader is a client of everything that is stored.
func (c *Cluster) Reader() client.Client {
	c.T.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(kinds); err != nil {
			c.T.Fatal(err)
		}
	}
	objects := append([]client.Object{c.Policy, c.Environment, c.Namespace, c.Guard}, c.Further...)
	for _, b := range c.Baselines {
		objects = append(objects, b)
	}
	for _, d := range c.Objects {
		objects = append(objects, d)
	}
	for name := range c.Authorized {
		objects = append(objects, c.revision(name))
	}
	for _, p := range c.Plans {
		objects = append(objects, p)
	}
	return fake.NewClientBuilder().WithScheme(kinds).WithRESTMapper(Mapper()).WithObjects(objects...).
		WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.RemediationPolicy{}, &v1alpha1.RemediationPlan{}, &v1alpha1.RemediationRequest{}, &v1alpha1.Baseline{}).Build()
}

// Mapper knows where the kinds are served.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(Deployments, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, meta.RESTScopeNamespace)
	return m
}
