// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func rule(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: strings.Split(verbs, ","), Resources: resources}
}

// grant gives a user rights in one namespace; tests use users of their own
// rights per namespace, so they do not meet.
func grant(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	must(t, kube.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules}))
	must(t, kube.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: user},
	}))
	const limit = 20 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	poll.True(t, limit, "alice has her rights", func() bool {
		return plumbline(ctx, alice, namespace, "", "status").Code == 0 || plumbline(ctx, alice, namespace, "", "status", "deploy/web").Code == 0
	})
}

// runAssessor takes acceptance requests of one namespace as the real one does:
// only for the hash that is observed. It ends with the test.
func runAssessor(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := kube.Watch(ctx, &v1alpha1.BaselineList{}, client.InNamespace(namespace))
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		watcher.Stop()
		<-done
	})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			b, ok := event.Object.(*v1alpha1.Baseline)
			if !ok || b.Spec.Accept == nil {
				continue
			}
			if err := take(ctx, b); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("taking a request: %v", err)
			}
		}
	}()
}

func take(ctx context.Context, b *v1alpha1.Baseline) error {
	accept := b.Spec.Accept
	b.Spec.Accept = nil
	if accept.Hash == b.Status.Observed.Hash {
		b.Spec.Authorized.Hash, b.Spec.Authorized.By = accept.Hash, accept.RequestedBy
		b.Spec.Authorized.Number++
	}
	if err := kube.Update(ctx, b); err != nil {
		return err
	}
	b.Status.ObservedGeneration = b.Generation
	return kube.Status().Update(ctx, b)
}

func TestAccept_AuthorizesTheHashThatWasShown(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	baseline := f.drifted("web")
	grant(t, f.namespace, "alice", rule("plumbline.dev", "get,list,watch,patch", "baselines"))
	runAssessor(t, f.namespace)

	got := plumbline(t.Context(), alice, f.namespace, "", "accept", "deploy/web", "--reason", "hotfix")
	if want := f.namespace + "/deployment.apps/web accepted (revision 2)\n"; got.Code != 0 || got.Stdout != want {
		t.Fatalf("accept gave %+v, want %q", got, want)
	}
	for _, shown := range []string{"/spec/replicas  1 → 5  by alice", f.hash("web")} {
		if !strings.Contains(got.Stderr, shown) {
			t.Errorf("what is accepted is not shown: %q is not in %q", shown, got.Stderr)
		}
	}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	if baseline.Spec.Authorized.Hash != f.hash("web") || baseline.Spec.Authorized.By != "alice" {
		t.Errorf("authorized is %+v", baseline.Spec.Authorized)
	}
}

func TestAccept_SendsReasonAndRequester(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	baseline := f.drifted("web")
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy/web", "--reason", "INC-7", "--wait=false", "--as", "carol", "--as-group", "system:masters")
	if got.Code != 0 || got.Stdout != f.namespace+"/deployment.apps/web acceptance requested\n" {
		t.Fatalf("accept gave %+v", got)
	}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	want := &v1alpha1.AcceptRequest{Hash: f.hash("web"), RequestedBy: "carol", RequestedByGroups: []string{"system:masters"}, Reason: "INC-7"}
	if diff := cmp.Diff(want, baseline.Spec.Accept); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	// A second request without a reason does not inherit the first one's.
	plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy/web", "--wait=false")
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	if baseline.Spec.Accept.Reason != "" || baseline.Spec.Accept.RequestedBy != "admin" {
		t.Errorf("the second request is %+v", *baseline.Spec.Accept)
	}
}

func TestAccept_WithoutAssessorSaysThatItWaitedInVain(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy/web", "--timeout", "300ms")
	want := "error: " + f.namespace + "/deployment.apps/web: acceptance is requested, and the assessor has not taken it within 300ms\n"
	if got.Code != 1 || got.Stdout != "" || !strings.HasSuffix(got.Stderr, want) {
		t.Errorf("accept gave %+v, want %q", got, want)
	}
}

func TestAccept_DryRunsChangeNothing(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	baseline := f.drifted("web")
	for _, flag := range []string{"--dry-run", "--dry-run=client", "--dry-run=server"} {
		got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "--all", flag)
		if got.Code != 0 || !strings.Contains(got.Stdout, "dry run)") {
			t.Errorf("accept %s gave %+v", flag, got)
		}
	}
	before := baseline.ResourceVersion
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	if baseline.ResourceVersion != before {
		t.Errorf("a dry run moved the Baseline from %s to %s", before, baseline.ResourceVersion)
	}
}

func TestAccept_InBulkTakesOnlyWhatMatchesAltogether(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("only-alice")
	mixed := f.drifted("mixed")
	f.drift(mixed, finding("/spec/replicas", "1", "5", "alice", time.Minute), finding("/spec/paused", "false", "true", "bob", time.Minute))
	old := f.drifted("old")
	f.drift(old, finding("/spec/replicas", "1", "5", "alice", 3*time.Hour))
	f.deployment("calm", "nginx:1.27")
	f.authorize("calm", "ci", 1)
	runAssessor(t, f.namespace)

	refused := plumbline(t.Context(), kubeconfig, f.namespace, "y\n", "accept", "--by", "alice", "--since", "1h")
	if refused.Code != 1 || !strings.Contains(refused.Stderr, "use --yes") {
		t.Errorf("bulk without a terminal and --yes gave %+v", refused)
	}
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "--by", "alice", "--since", "1h", "--yes")
	if want := f.namespace + "/deployment.apps/only-alice accepted (revision 2)\n"; got.Code != 0 || got.Stdout != want {
		t.Errorf("accept gave %+v, want %q", got, want)
	}
	if !strings.Contains(got.Stderr, "mixed is left alone: it also has /spec/paused by bob") {
		t.Errorf("the mixed object is not named: %s", got.Stderr)
	}
	if strings.Contains(got.Stderr, "apps/old") || strings.Contains(got.Stderr, "calm") {
		t.Errorf("objects that do not match at all are named: %s", got.Stderr)
	}

	all := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy", "--all", "--yes")
	if all.Code != 0 || strings.Count(all.Stdout, "accepted (revision 2)") != 2 {
		t.Errorf("accept --all gave %+v", all)
	}
}

func TestAccept_PartialFailureNamesEachObject(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	unread := f.drifted("unread")
	unread.Status.State = v1alpha1.StateUnknown
	must(t, kube.Status().Update(t.Context(), unread))
	runAssessor(t, f.namespace)

	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy", "web", "unread", "none")
	if got.Code != 1 || !strings.Contains(got.Stdout, "apps/web accepted") {
		t.Errorf("accept gave %+v", got)
	}
	for _, want := range []string{
		"error: deployment.apps/none in namespace " + f.namespace + " has no Baseline",
		"error: " + f.namespace + "/deployment.apps/unread was not accepted: its state is unknown",
	} {
		if !strings.Contains(got.Stderr, want) {
			t.Errorf("stderr does not hold %q:\n%s", want, got.Stderr)
		}
	}
}

func TestAccept_ForbiddenIsTheServersAnswer(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	grant(t, f.namespace, "alice", rule("plumbline.dev", "get,list,watch", "baselines"))
	got := plumbline(t.Context(), alice, f.namespace, "", "accept", "deploy/web")
	if got.Code != 1 || !strings.Contains(got.Stderr, `Error from server (Forbidden): `+f.namespace+`/deployment.apps/web was not accepted: baselines.plumbline.dev "deployments.apps.web" is forbidden: User "alice"`) {
		t.Errorf("accept gave %+v", got)
	}
}

// TestAccept_OutlivesConcurrentStatusWrites has the assessor's status writes
// race with the request: the precondition fails, the hash is still the one that
// was shown, the request goes through.
func TestAccept_OutlivesConcurrentStatusWrites(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	baseline := f.drifted("web")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond) // far more than an assessor writes
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastCheckTime": metav1.Now().Rfc3339Copy(), "nextCheck": time.Now().Format(time.RFC3339Nano)}})
			if err == nil {
				err = kube.Status().Patch(ctx, baseline.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("writing status: %v", err)
				return
			}
		}
	}()
	defer func() { cancel(); <-done }()
	for range 10 {
		if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "accept", "deploy/web", "--wait=false"); got.Code != 0 {
			t.Fatalf("accept gave %+v", got)
		}
	}
}
