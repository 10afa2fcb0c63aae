// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	now        = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// object is a Deployment that was made a month ago.
func object(namespace, name string, changes ...func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
	o := &metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: ago(30 * 24 * time.Hour), Labels: map[string]string{"app": name}}
	for _, change := range changes {
		change(o)
	}
	return o
}

const (
	image    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	replicas = `{"f:spec":{"f:replicas":{}}}`
	restart  = `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`
	labels   = `{"f:metadata":{"f:labels":{"f:team":{}}}}`
	status   = `{"f:status":{"f:replicas":{}}}`
)

// written adds an entry of managedFields; age 0 stands for none recorded.
func written(manager string, age time.Duration, fields string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) {
		entry := metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{},
		}
		entry.FieldsV1.SetRawBytes([]byte(fields))
		if age != 0 {
			at := ago(age)
			entry.Time = &at
		}
		o.ManagedFields = append(o.ManagedFields, entry)
	}
}

func through(subresource, manager string, age time.Duration, fields string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) {
		written(manager, age, fields)(o)
		o.ManagedFields[len(o.ManagedFields)-1].Subresource = subresource
	}
}

func stamped(user string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) { o.Annotations = map[string]string{v1alpha1.AnnotationWriter: user} }
}

func createdAt(age time.Duration) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) { o.CreationTimestamp = ago(age) }
}

func ownedBy(apiVersion, kind, name string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)})
	}
}

// question is about the Deployments of shop, stamped for ten days.
func question(changes ...func(*Question)) Question {
	q := Question{
		Draft: Draft{
			Kind: SpecGuard, Namespace: "shop", Name: "workloads",
			Spec: v1alpha1.ClusterGuardSpec{GuardSpec: v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}}},
		},
		Now: now, Since: 24 * time.Hour,
		Installation: Installation{
			Excluded:     []string{"kube-system", "plumbline-system"},
			StampedSince: now.Add(-10 * 24 * time.Hour),
		},
	}
	for _, change := range changes {
		change(&q)
	}
	return q
}

// selecting makes the draft a cluster guard over these namespaces, of all that there
// are.
func selecting(guarded ...string) func(*Question) {
	return func(q *Question) {
		q.Draft.Kind, q.Draft.Namespace = ClusterSpecGuard, ""
		q.Draft.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
		q.NamespaceLabels = map[string]map[string]string{"shop": nil, "ci": nil, "argocd": nil}
		for _, namespace := range guarded {
			q.NamespaceLabels[namespace] = map[string]string{"guarded": "yes"}
		}
	}
}

func hpa(name string) func(*Question) {
	return func(q *Question) {
		q.Autoscalers = append(q.Autoscalers, Autoscaler{
			Kind: HorizontalPodAutoscaler, Namespace: "shop", Name: name + "-hpa", Target: GroupKind{"apps", "Deployment"}, TargetName: name,
		})
	}
}

// survey takes the objects and gives every account the same existence, but for
// those that are named.
func survey(t testing.TB, q Question, existence Existence, objects ...*metav1.ObjectMeta) Report {
	t.Helper()
	s, err := NewSurvey(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		s.Add(deployment, o)
	}
	accounts := Accounts{}
	for _, a := range s.Candidates() {
		accounts[a] = existence
	}
	r, err := s.Report(accounts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// summary is what most tests compare.
type summary struct {
	Trusted   []string
	Expected  []string
	Drift     []string
	Undated   []string
	Undecided []string
}

func summarize(r Report) summary {
	var s summary
	spec := specOf(r)
	for _, a := range spec.TrustedWriters.ServiceAccounts {
		s.Trusted = append(s.Trusted, a.Namespace+"/"+a.Name)
	}
	for _, e := range spec.ExpectedWriters {
		for _, a := range e.Writers.ServiceAccounts {
			s.Expected = append(s.Expected, fmt.Sprintf("%s: %s/%s %v", e.Name, a.Namespace, a.Name, e.Paths))
		}
	}
	for _, w := range r.Drift {
		s.Drift = append(s.Drift, describe(w))
	}
	for _, w := range r.Undated {
		s.Undated = append(s.Undated, describe(w))
	}
	for _, u := range r.Undecided {
		s.Undecided = append(s.Undecided, u.Name())
	}
	return s
}

func describe(w Write) string {
	text := fmt.Sprintf("%s %s %s by %s (%s)", w.Name, w.Manager, w.Paths, w.User, w.Class)
	if w.Created {
		text += " created"
	}
	return text
}

func specOf(r Report) v1alpha1.GuardSpec {
	switch g := r.Proposal.Guard.(type) {
	case *v1alpha1.SpecGuard:
		return g.Spec
	case *v1alpha1.ClusterSpecGuard:
		return g.Spec.GuardSpec
	default:
		panic(fmt.Sprintf("a guard of type %T", g))
	}
}
