// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// What the roles of the chart let the executor do, asked of the API server: its
// work, and nothing beside it.
func TestTheExecutorMayDoItsWorkAndNothingBesideIt(t *testing.T) {
	const elsewhere = "default"
	on := func(verb, group, resource, namespace string) authorizationv1.ResourceAttributes {
		resource, subresource, _ := strings.Cut(resource, "/")
		return authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace}
	}
	named := func(a authorizationv1.ResourceAttributes, name string) authorizationv1.ResourceAttributes {
		a.Name = name
		return a
	}
	tests := map[string]struct {
		want  bool
		asked []authorizationv1.ResourceAttributes
	}{
		"read, make and patch guarded kinds where it is bound": {true, []authorizationv1.ResourceAttributes{
			on("get", "apps", "deployments", tenant), on("create", "apps", "deployments", tenant), on("patch", "apps", "statefulsets", tenant),
			on("update", "batch", "cronjobs", tenant), on("patch", "", "configmaps", tenant), on("patch", "example.com", "widgets", tenant)}},
		"guarded kinds where it is not bound": {false, []authorizationv1.ResourceAttributes{
			on("get", "apps", "deployments", elsewhere), on("patch", "apps", "deployments", elsewhere), on("create", "apps", "deployments", elsewhere),
			on("patch", "apps", "deployments", "kube-system"), on("patch", "apps", "deployments", rendered.Namespace), on("patch", "apps", "deployments", "")}},
		"delete, or list them, where it is bound": {false, []authorizationv1.ResourceAttributes{
			on("delete", "apps", "deployments", tenant), on("deletecollection", "apps", "deployments", tenant), on("list", "apps", "deployments", tenant),
			on("patch", "apps", "deployments/scale", tenant), on("update", "apps", "deployments/status", tenant)}},
		"other kinds where it is bound": {false, []authorizationv1.ResourceAttributes{
			on("get", "", "secrets", tenant), on("create", "", "pods", tenant), on("create", "", "pods/exec", tenant), on("create", "", "serviceaccounts/token", tenant), on("list", "", "serviceaccounts", tenant),
			on("impersonate", "", "serviceaccounts", tenant), on("update", "", "serviceaccounts", tenant),
			on("patch", "", "namespaces", tenant), on("create", "rbac.authorization.k8s.io", "rolebindings", tenant), on("impersonate", "", "users", "")}},
		"read what it acts by": {true, []authorizationv1.ResourceAttributes{
			on("watch", "plumbline.dev", "remediationpolicies", ""), on("list", "plumbline.dev", "remediationplans", ""), on("list", "plumbline.dev", "environments", ""),
			on("list", "plumbline.dev", "specguards", ""), on("list", "plumbline.dev", "clusterspecguards", ""), on("get", "plumbline.dev", "baselines", tenant),
			on("get", "plumbline.dev", "baselinerevisions", tenant), on("get", "", "namespaces", ""), on("get", "", "serviceaccounts", tenant), on("list", "policy", "poddisruptionbudgets", tenant)}},
		"write how far it is": {true, []authorizationv1.ResourceAttributes{
			on("update", "plumbline.dev", "remediationplans/status", tenant), on("update", "plumbline.dev", "baselines/status", tenant),
			on("patch", "plumbline.dev", "environments/status", ""), on("create", "plumbline.dev", "remediationledgers", rendered.Namespace),
			on("update", "plumbline.dev", "remediationledgers/status", rendered.Namespace), on("create", "authorization.k8s.io", "subjectaccessreviews", ""),
			on("create", "events.k8s.io", "events", tenant)}},
		"write what others decide": {false, []authorizationv1.ResourceAttributes{
			on("create", "plumbline.dev", "remediationplans", tenant), on("update", "plumbline.dev", "remediationplans", tenant), on("delete", "plumbline.dev", "remediationplans", tenant),
			on("update", "plumbline.dev", "remediationpolicies", ""), on("update", "plumbline.dev", "remediationpolicies/status", ""), on("update", "plumbline.dev", "baselines", tenant),
			on("create", "plumbline.dev", "baselinerevisions", tenant), on("list", "plumbline.dev", "baselinerevisions", tenant), on("update", "plumbline.dev", "specguards", tenant),
			on("delete", "plumbline.dev", "remediationledgers", rendered.Namespace), on("create", "plumbline.dev", "remediationledgers", tenant)}},
		"lead, and publish its key": {true, []authorizationv1.ResourceAttributes{
			named(on("update", "coordination.k8s.io", "leases", rendered.Namespace), "plumbline-executor"),
			named(on("update", "", "configmaps", rendered.Namespace), "plumbline-evidence")}},
		"take somebody else's lease, move the anchor of its records, or read a Secret": {false, []authorizationv1.ResourceAttributes{
			named(on("update", "coordination.k8s.io", "leases", rendered.Namespace), "plumbline-assessor"), on("update", "", "configmaps", rendered.Namespace),
			named(on("update", "", "configmaps", rendered.Namespace), "plumbline-evidence-anchor"), named(on("patch", "", "configmaps", rendered.Namespace), "plumbline-evidence-anchor"),
			named(on("get", "", "secrets", rendered.Namespace), "plumbline-evidence"), named(on("get", "", "secrets", rendered.Namespace), "plumbline-redis")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, asked := range test.asked {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: executor, Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + rendered.Namespace}, ResourceAttributes: &asked}}
				if err := admin.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed != test.want {
					t.Errorf("%s %s/%s.%s in %q: allowed %v, want %v", asked.Verb, asked.Resource, asked.Subresource, asked.Group, asked.Namespace, review.Status.Allowed, test.want)
				}
			}
		})
	}
}

// The executor asks with whose right a plan acts; the API server answers it.
func TestTheExecutorMayAskWhatSomebodyMay(t *testing.T) {
	for user, want := range map[string]bool{"alice": true, "stranger": false} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: map[string][]string{"alice": {"tenants"}}[user],
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: tenant}}}
		if err := mustBe(t, executor).Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != want {
			t.Errorf("%s may patch: %v, want %v", user, review.Status.Allowed, want)
		}
	}
}

// A write of the executor's is stamped like everybody's, so that it can be told
// from others.
func TestTheExecutorsWritesAreStamped(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("put-back")
	mustCreate(t, alice, d)
	if err := merged(t, execute, d, `{"spec":{"replicas":4}}`); err != nil {
		t.Fatal(err)
	}
	if got := d.Annotations[v1alpha1.AnnotationWriter]; got != executor {
		t.Errorf("the writer is %q", got)
	}
	err := mustBe(t, executor).Delete(t.Context(), d)
	assertAnswer(t, err, `cannot delete resource "deployments"`)
}

// The records of a release, and the key they are signed with, outlive it: another
// installation goes on with the same chains.
func TestEvidenceOutlivesTheRelease(t *testing.T) {
	rotation.Share(t, 3)
	r := newRelease(t)
	if err := r.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil {
		t.Fatal(err)
	}
	values := []string{"--set", "executor.enabled=true", "--set", "executor.namespaces={" + tenant + "}"}
	out := r.run(t, append([]string{"install", rendered.Release, rendered.ChartDir(), "--create-namespace"}, values...)...)
	if !strings.Contains(out, "The executor runs. It may remediate the guarded kinds in: "+tenant) {
		t.Errorf("the notes do not say where the executor may write:\n%s", out)
	}
	first := r.evidenceKey(t)
	executing := r.as(t, "plumbline-executor")
	r.actAsTheExecutor(t, executing)

	for range 2 {
		r.run(t, append([]string{"upgrade", rendered.Release, rendered.ChartDir(), "--set", "executor.caps.maxPerHour=5"}, values...)...)
		r.keptEvidence(t, first)
	}
	lease := &coordinationv1.Lease{}
	r.get(t, lease, "plumbline-executor")
	if got := ptr.Deref(lease.Spec.HolderIdentity, ""); got != "executor-0" {
		t.Errorf("an upgrade took the lease from its holder: %q", got)
	}

	r.run(t, "uninstall", rendered.Release)
	r.keptEvidence(t, first)
	claim := &corev1.PersistentVolumeClaim{}
	r.get(t, claim, "plumbline-evidence")
	if err := r.kube.Get(t.Context(), types.NamespacedName{Namespace: rendered.Namespace, Name: "plumbline-executor"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the executor after uninstall: %v", err)
	}
	if err := executing.Patch(t.Context(), deployment("any"), client.RawPatch(types.MergePatchType, []byte(`{}`))); !apierrors.IsForbidden(err) {
		t.Errorf("after uninstall the executor's account gets %v for a write, want forbidden", err)
	}

	r.run(t, append([]string{"install", rendered.Release, rendered.ChartDir()}, values...)...)
	r.keptEvidence(t, first)
}

// actAsTheExecutor writes what the executor writes at run time.
func (r *release) actAsTheExecutor(t *testing.T, executing client.Client) {
	t.Helper()
	public := &corev1.ConfigMap{}
	public.Name, public.Namespace = "plumbline-evidence", rendered.Namespace
	if err := executing.Patch(t.Context(), public, client.RawPatch(types.MergePatchType, []byte(`{"data":{"keys.pem":"public"}}`))); err != nil {
		t.Fatalf("publishing the key as the executor: %v", err)
	}
	lease := &coordinationv1.Lease{}
	lease.Name, lease.Namespace = "plumbline-executor", rendered.Namespace
	if err := executing.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"executor-0"}}`))); err != nil {
		t.Fatalf("taking the lease as the executor: %v", err)
	}
}

func (r *release) evidenceKey(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	r.get(t, secret, "plumbline-evidence")
	key, err := evidence.ParsePrivateKey(secret.Data["key.pem"])
	if err != nil {
		t.Fatal(err)
	}
	return key.KeyID()
}

func (r *release) keptEvidence(t *testing.T, key string) {
	t.Helper()
	if got := r.evidenceKey(t); got != key {
		t.Errorf("another key signs now: %s, not %s", got, key)
	}
	public := &corev1.ConfigMap{}
	r.get(t, public, "plumbline-evidence")
	if got := public.Data["keys.pem"]; got != "public" {
		t.Errorf("the published key became %q", got)
	}
}
