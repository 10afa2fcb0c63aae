// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	deployer = "system:serviceaccount:ci:deployer"
	argoCD   = "system:serviceaccount:argocd:argocd-application-controller"
	hpaUser  = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// TestAdopt is one story on one API server: objects written by CI, by a person
// with kubectl edit, by an autoscaler and by two appliers, and what adopt makes
// of them.
func TestAdopt(t *testing.T) {
	s := startServer(t)
	s.install()
	s.writeShop()
	t.Run("the report names who wrote what", s.reportNamesWriters)
	t.Run("the default output is for people", s.reportForPeople)
	t.Run("autoscalers of others are known by their kinds", s.reportOfAutoscalers)
	t.Run("who may read little is told what is not known", s.reportOfLittle)
	t.Run("without a confirmation nothing is created", s.needsConfirmation)
	t.Run("a proposal can be piped into kubectl apply", s.proposalApplies)
	t.Run("the guard is created in mode Audit, once", s.createsOnce)
	t.Run("many objects are read in pages", s.readsPages)
	t.Run("an account of the guarded namespace is left to people", s.leavesOwnAccounts)
}

func (s *installed) plumbline(args ...string) answer { return s.plumblineIn("shop", args...) }

func (s *installed) plumblineIn(namespace string, args ...string) answer {
	return plumbline(s.t.Context(), s.cluster.Kubeconfig, namespace, "", args...)
}

// writeShop is a day in the namespace shop.
func (s *installed) writeShop() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, namespace := range []string{"shop", "ci", "argocd"} {
		must(s.t, s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": namespace}}}))
	}
	for _, a := range [][2]string{{"ci", "deployer"}, {"argocd", "argocd-application-controller"}, {"kube-system", "horizontal-pod-autoscaler"}} {
		must(s.t, s.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a[0], Name: a[1]}}))
	}
	must(s.t, s.as(deployer).Create(ctx, webDeployment("shop", "web"), client.FieldOwner("pipeline")))
	must(s.t, s.as(deployer).Create(ctx, webDeployment("shop", "cart"), client.FieldOwner("pipeline")))
	s.apply(argoCD, "argocd-controller", "front")
	s.apply("release-bot", "helm", "back")
	owned := webDeployment("shop", "owned")
	replicaSet := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u", Controller: new(true),
		}}},
		Spec: appsv1.ReplicaSetSpec{Selector: owned.Spec.Selector, Template: owned.Spec.Template},
	}
	must(s.t, s.admin.Create(ctx, replicaSet))
	s.autoscale("web")
	s.nextSecond()
	s.t.Setenv("KUBE_EDITOR", "sed -i s/nginx:1.27/nginx:1.28/")
	s.kubectl("alice", "edit", "deployment/cart", "-n", "shop")
	s.kubectl("alice", "rollout", "restart", "deployment/front", "-n", "shop")
}

// apply writes a Deployment by server-side apply, as GitOps tools and Helm do.
func (s *installed) apply(user, manager, name string) {
	s.t.Helper()
	manifest := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: shop}, spec: {selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: app, image: "nginx:1.27"}]}}}}`, name)
	_, err := s.cluster.Run(s.t.Context(), []string{
		"kubectl", "apply", "--server-side", "--field-manager", manager, "-f", "-", "--as", user, "--as-group", "system:masters",
	}, harness.WithStdin(manifest))
	must(s.t, err)
}

// autoscale makes an autoscaler and writes as it does.
func (s *installed) autoscale(name string) {
	s.t.Helper()
	ctx := s.t.Context()
	must(s.t, s.admin.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 9,
		},
	}))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	must(s.t, s.as(hpaUser).SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
}

// adoptionOf decodes what adopt -o json answers.
type adoptionOf struct {
	adopt.Report
	Proposal struct {
		Guard   v1alpha1.SpecGuard `json:"guard"`
		Reasons []adopt.Reason     `json:"reasons"`
	} `json:"proposal"`
	Unread []struct{ What, Why, Then string } `json:"unread"`
}

func (s *installed) report(args ...string) adoptionOf {
	s.t.Helper()
	return s.reportOf("shop", args...)
}

func (s *installed) reportOf(namespace string, args ...string) adoptionOf {
	s.t.Helper()
	got := s.plumblineIn(namespace, append([]string{"adopt", "--dry-run", "-o", "json"}, args...)...)
	if got.Code != 0 || got.Stderr != "" {
		s.t.Fatalf("adopt gave %+v", got)
	}
	var report adoptionOf
	must(s.t, json.Unmarshal([]byte(got.Stdout), &report))
	return report
}

// M7 of the guard's review: a tenant makes an account in the namespace, writes once as that
// account, and waits for the proposal.
func (s *installed) leavesOwnAccounts(t *testing.T) {
	const own = "system:serviceaccount:stall:helper"
	ctx := t.Context()
	must(t, s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stall"}}))
	must(t, s.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "stall", Name: "helper"}}))
	must(t, s.as(deployer).Create(ctx, webDeployment("stall", "web"), client.FieldOwner("pipeline")))
	must(t, s.as(own).Create(ctx, webDeployment("stall", "cart"), client.FieldOwner("pipeline")))
	r := s.reportOf("stall", "--kind", "deploy")
	want := []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}
	if diff := cmp.Diff(want, r.Proposal.Guard.Spec.TrustedWriters.ServiceAccounts); diff != "" {
		t.Errorf("the trusted accounts of the proposal (-want +got):\n%s", diff)
	}
	for _, w := range r.LastWrites {
		if w.Name == "cart" && w.User != own {
			t.Errorf("the report knows %q as the writer of cart", w.User)
		}
	}
}

func (s *installed) reportNamesWriters(t *testing.T) {
	r := s.report("--kind", "deploy,replicaset")
	last := map[string]string{}
	for _, w := range r.LastWrites {
		last[w.Name] = fmt.Sprintf("%s by %s, %s", w.User, w.KnownBy, w.Class)
	}
	wantLast := map[string]string{
		"web":   deployer + " by WriterStamp, Trusted",
		"cart":  "alice by WriterStamp, Untrusted",
		"front": "alice by WriterStamp, Untrusted", // her restart is the last write
		"back":  "release-bot by WriterStamp, Untrusted",
	}
	if diff := cmp.Diff(wantLast, last); diff != "" {
		t.Errorf("last writes (-want +got):\n%s", diff)
	}
	drift := map[string]string{}
	for _, w := range r.Drift {
		drift[w.Name+" by "+w.Manager] = w.User
	}
	wantDrift := map[string]string{"cart by kubectl-edit": "alice", "cart by pipeline": "", "back by helm": "release-bot"}
	if diff := cmp.Diff(wantDrift, drift); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	if len(r.Benign) != 1 || r.Benign[0].Name != "front" || r.Benign[0].Manager != "kubectl-rollout" {
		t.Errorf("benign writes: %+v", r.Benign)
	}
	wantSpec := v1alpha1.GuardSpec{
		Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "ReplicaSet"}},
		Mode:           v1alpha1.GuardModeAudit,
		TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "argocd", Name: "argocd-application-controller"}, {Namespace: "ci", Name: "deployer"}}},
		ExpectedWriters: []v1alpha1.ExpectedWriter{{
			Name: "autoscaler", Paths: []string{"/spec/replicas"},
			Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "kube-system", Name: "horizontal-pod-autoscaler"}}},
		}},
	}
	if diff := cmp.Diff(wantSpec, r.Proposal.Guard.Spec); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
	wantCoverage := []adopt.Coverage{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Objects: 4},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Skipped: map[adopt.SkipReason]int{adopt.SkipOwned: 1}, Unregistered: true},
	}
	if diff := cmp.Diff(wantCoverage, r.Coverage); diff != "" {
		t.Errorf("coverage (-want +got):\n%s", diff)
	}
	if len(r.Autoscaled) != 1 || !r.Autoscaled[0].Seen || r.Autoscaled[0].By != "web" {
		t.Errorf("autoscaled objects: %+v", r.Autoscaled)
	}
}

func (s *installed) reportForPeople(t *testing.T) {
	got := s.plumbline("adopt", "--dry-run", "--since", "1h")
	if got.Code != 0 || got.Stderr != "" {
		t.Fatalf("adopt gave %+v", got)
	}
	for _, want := range []string{
		"SpecGuard shop/workloads would cover 4 objects.", "Never guarded: kube-node-lease", "/spec/replicas", "To decide",
		"release-bot", "name: argocd-application-controller", "mode: Audit",
	} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("the report lacks %q:\n%s", want, got.Stdout)
		}
	}
	again := s.plumbline("adopt", "--dry-run", "--since", "1h")
	if diff := cmp.Diff(momentless(got), momentless(again), ages); diff != "" {
		t.Errorf("two runs differ (-first +second):\n%s", diff)
	}
}

// momentless cuts the moments of a run out of what it printed.
func momentless(a answer) answer {
	lines := strings.Split(a.Stdout, "\n")
	for i, line := range lines {
		for _, moment := range []string{"drift since ", "writes until "} {
			if before, _, found := strings.Cut(line, moment); found {
				lines[i] = before + moment
			}
		}
	}
	a.Stdout = strings.Join(lines, "\n")
	return a
}

// kind is a CustomResourceDefinition that takes anything.
func kind(group, version, plural, kind string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[3]s.%[1]s, annotations: {api-approved.kubernetes.io: unapproved}},
		spec: {group: %[1]s, scope: Namespaced, names: {plural: %[3]s, kind: %[4]s}, versions: [{name: %[2]s, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, group, version, plural, kind)
}

func (s *installed) reportOfAutoscalers(t *testing.T) {
	ctx := t.Context()
	must(t, s.cluster.Apply(ctx, kind("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")+"\n---\n"+kind("autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler")))
	_, err := s.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/scaledobjects.keda.sh", "crd/verticalpodautoscalers.autoscaling.k8s.io")
	must(t, err)
	must(t, s.cluster.Apply(ctx, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: queue, namespace: shop}, spec: {scaleTargetRef: {name: cart}}}
---
{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: sizes, namespace: shop}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`))
	r := s.report()
	got := map[string][]string{}
	for _, a := range r.Autoscaled {
		got[fmt.Sprintf("%s %s of %s", a.Autoscaler, a.By, a.Name)] = a.Paths
	}
	want := map[string][]string{
		"HorizontalPodAutoscaler web of web": {"/spec/replicas"}, "ScaledObject queue of cart": {"/spec/replicas"}, "VerticalPodAutoscaler sizes of web": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("autoscaled objects (-want +got):\n%s", diff)
	}
	// KEDA's usual account is not there, so it is not trusted with anything.
	if rules := r.Proposal.Guard.Spec.ExpectedWriters; len(rules) != 1 || rules[0].Name != "autoscaler" {
		t.Errorf("expected writers: %+v", rules)
	}
	must(t, s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "keda"}}))
	must(t, s.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "keda", Name: "keda-operator"}}))
	if rules := s.report().Proposal.Guard.Spec.ExpectedWriters; len(rules) != 2 || rules[1].Name != "keda" {
		t.Errorf("expected writers with KEDA's account: %+v", rules)
	}
}

func (s *installed) reportOfLittle(t *testing.T) {
	s.kubectl("admin", "create", "role", "reader", "-n", "shop", "--verb=list", "--resource=deployments.apps")
	s.kubectl("admin", "create", "rolebinding", "reader", "-n", "shop", "--role=reader", "--user=carol")
	var r adoptionOf
	err := harness.Eventually(t.Context(), "carol's rights", 20*time.Second, func(ctx context.Context) (bool, string) {
		got := plumbline(ctx, s.cluster.Kubeconfig, "shop", "", "adopt", "--dry-run", "-o", "json", "--as", "carol")
		r = adoptionOf{}
		return got.Code == 0 && json.Unmarshal([]byte(got.Stdout), &r) == nil && r.Objects > 0, got.Stderr
	})
	must(t, err)
	if r.Objects != 4 || r.StampsProven || len(r.Proposal.Guard.Spec.TrustedWriters.ServiceAccounts) > 0 {
		t.Errorf("she got %d objects, stamps proven %v, trusted %v", r.Objects, r.StampsProven, r.Proposal.Guard.Spec.TrustedWriters)
	}
	var unread []string
	for _, u := range r.Unread {
		unread = append(unread, u.What)
	}
	want := []string{
		"mutatingadmissionpolicy plumbline-writer", "mutatingwebhookconfiguration plumbline", "horizontalpodautoscalers.autoscaling in namespace shop",
		"scaledobjects.keda.sh in namespace shop", "verticalpodautoscalers.autoscaling.k8s.io in namespace shop",
		"statefulsets.apps in namespace shop", "daemonsets.apps in namespace shop", "cronjobs.batch in namespace shop", "serviceaccounts in namespace argocd",
	}
	if diff := cmp.Diff(want, unread); diff != "" {
		t.Errorf("not read (-want +got):\n%s", diff)
	}
}

func (s *installed) guards() []string {
	s.t.Helper()
	out, err := s.cluster.Kubectl(s.t.Context(), "get", "specguards,clusterspecguards", "-A", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.mode}{"\n"}{end}`)
	must(s.t, err)
	return strings.Fields(out)
}

func (s *installed) needsConfirmation(t *testing.T) {
	got := s.plumbline("adopt")
	if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "nothing was created: creating a guard needs a confirmation") {
		t.Errorf("adopt without a terminal gave %+v", got)
	}
	got = s.plumbline("adopt", "--dry-run=server")
	if got.Code != 0 || !strings.Contains(got.Stderr, "specguard.plumbline.dev/workloads created (server dry run)") {
		t.Errorf("a server dry run gave %+v", got)
	}
	if left := s.guards(); len(left) > 0 {
		t.Errorf("guards were created: %q", left)
	}
}

func (s *installed) proposalApplies(t *testing.T) {
	got := s.plumbline("adopt", "--namespace-selector", "team=shop", "--name", "piped", "--dry-run", "-o", "yaml")
	if got.Code != 0 || got.Stderr != "" {
		t.Fatalf("adopt gave %+v", got)
	}
	must(t, s.cluster.Apply(t.Context(), got.Stdout))
	guard := &v1alpha1.ClusterSpecGuard{}
	must(t, s.admin.Get(t.Context(), client.ObjectKey{Name: "piped"}, guard))
	if guard.Spec.Mode != v1alpha1.GuardModeAudit || len(guard.Spec.TrustedWriters.ServiceAccounts) != 2 || guard.Spec.NamespaceSelector.MatchLabels["team"] != "shop" {
		t.Errorf("the applied guard is %+v\n%s", guard.Spec, got.Stdout)
	}
	// Of what it trusts nothing is left to propose.
	again := s.report("guard", "piped")
	if len(again.Proposal.Reasons) > 0 || again.Objects != 4 {
		t.Errorf("the applied guard is told to add %+v for %d objects", again.Proposal.Reasons, again.Objects)
	}
	must(t, s.admin.Delete(t.Context(), guard))
}

func (s *installed) createsOnce(t *testing.T) {
	got := s.plumbline("adopt", "--yes")
	if want := "specguard.plumbline.dev/workloads created\n"; got.Code != 0 || got.Stdout != want {
		t.Fatalf("adopt gave %d %q %s", got.Code, got.Stdout, got.Stderr)
	}
	if diff := cmp.Diff([]string{"workloads", "Audit"}, s.guards()); diff != "" {
		t.Errorf("guards (-want +got):\n%s", diff)
	}
	for _, args := range [][]string{{"adopt", "--yes"}, {"adopt", "guard", "workloads", "--yes"}} {
		if got := s.plumbline(args...); got.Code != 1 || !strings.Contains(got.Stderr, "exists") {
			t.Errorf("%q over an existing guard gave %+v", args, got)
		}
	}
}

func (s *installed) readsPages(t *testing.T) {
	ctx := t.Context()
	const count = 1100
	must(t, s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}}))
	for i := range count {
		must(t, s.admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("c%04d", i)}, Data: map[string]string{"k": "v"},
		}, client.FieldOwner("filler")))
	}
	got := plumbline(ctx, s.cluster.Kubeconfig, "many", "", "adopt", "--kind", "configmap", "--dry-run", "-o", "json")
	var r adoptionOf
	must(t, json.Unmarshal([]byte(got.Stdout), &r))
	if r.Objects != count || len(r.LastWrites) != count || r.Writes.Drift != count {
		t.Errorf("of %d objects %d were read, %d are listed, %d would have drifted", count, r.Objects, len(r.LastWrites), r.Writes.Drift)
	}
}
