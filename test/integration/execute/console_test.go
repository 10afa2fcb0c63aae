// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/console"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// served has records served at the health port of a pod, as the process of the executor serves them. The API
// server's proxy reaches the pod at an address of this machine.
func (w *world) served(records evidenceStore) {
	w.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", net.JoinHostPort(backend.Own(w.t), "0"))
	w.Must(err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: evidencehttp.Handler(records.writer.Store)}} //nolint:gosec // it ends with the test
	server.Start()
	w.t.Cleanup(server.Close)
	at := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a listener of tcp has no other address
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-executor-0", Labels: map[string]string{
			"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "executor",
		}},
		Spec: corev1.PodSpec{ServiceAccountName: "default", AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
			Name: "executor", Image: "executor", Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: int32(at.Port)}}, //nolint:gosec // a port
		}}},
	}
	w.Must(admin.Create(w.t.Context(), pod))
	w.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(w.t.Context()), pod, client.GracePeriodSeconds(0)); err != nil {
			w.t.Error(err)
		}
	})
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, at.IP.String(), []corev1.PodIP{{IP: at.IP.String()}}
	w.Must(admin.Status().Update(w.t.Context(), pod))
}

// consoleOf opens a console as a user of a group.
func consoleOf(t *testing.T, user, group string) *console.Console {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := apiserver.WriteKubeconfig(path, config, apiserver.Impersonating(config, user, group, "system:authenticated")); err != nil {
		t.Fatal(err)
	}
	return console.Open(t, "--kubeconfig", path)
}

// auditors may view, and find the executor and its keys; they may not reach its pod.
func auditors(t *testing.T) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "auditors"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "auditors"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "auditors"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "auditors"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := apiserver.AwaitBound(t.Context(), admin, binding.Subjects[0], rendered.Namespace, binding.RoleRef); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.Bind(t.Context(), admin, "auditors-view", "plumbline-view", "auditors"); err != nil {
		t.Fatal(err)
	}
}

// console shows and verifies the records of a plan to a user with the right to reach the executor, and names the right
// to a user without.
func (p plugin) console(t *testing.T, plan *v1alpha1.RemediationPlan) {
	t.Helper()
	id := plan.Namespace + "." + plan.Name
	packetPath, page := "/api/v1/remediation/history/"+id+"/evidence", "/evidence/plans/"+plan.Namespace+"/"+plan.Name
	ops := console.Open(t, "--kubeconfig", p.kubeconfig)
	var got wire.Evidence
	ops.Want(t, packetPath, http.StatusOK, &got)
	if !got.Verified || got.PlanID != string(plan.UID) || got.Status != "succeeded" || len(got.Envelopes) == 0 || len(got.Results) != 1 {
		t.Errorf("the packet is verified %t with the problems %q: %s, %d envelopes, %+v", got.Verified, got.Problems, got.Status, len(got.Envelopes), got.Results)
	}
	var kept []wire.Result
	ops.Want(t, "/api/v1/remediation/history?namespace="+plan.Namespace, http.StatusOK, &kept)
	if len(kept) != 1 || kept[0].Source != "plan" {
		t.Errorf("the history is %+v", kept)
	}
	ops.Shows(t, "/evidence", http.StatusOK, "Whole: ", "goes as far as the ledger says")
	ops.Shows(t, page, http.StatusOK, "Whole: ", "Step 0 Reconcile: Verified", packetPath)
	dom, complaints := browser.Open(t, ops.WithKey(t, page))
	for _, want := range []string{"<h1>Evidence of plan " + plan.Namespace + "/" + plan.Name + "</h1>", "Updates are paused."} {
		if len(complaints) > 0 || !strings.Contains(dom, want) {
			t.Errorf("the browser complains: %q, want %q in %s", complaints, want, dom)
		}
	}

	auditors(t)
	auditor := consoleOf(t, "ada", "auditors")
	for _, path := range []string{packetPath, "/api/v1/remediation/history?namespace=" + plan.Namespace} {
		var problem wire.Problem
		auditor.Want(t, path, http.StatusForbidden, &problem)
		if want := (wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: rendered.Namespace}); problem.Right == nil || *problem.Right != want {
			t.Errorf("%s lacks %+v, want %+v", path, problem.Right, want)
		}
	}
	auditor.Want(t, "/api/v1/remediation/history?source=plan&namespace="+plan.Namespace, http.StatusOK, &kept)
	auditor.Shows(t, page, http.StatusForbidden, "you may not get pods/proxy in namespace "+rendered.Namespace)
}

// consoleWhenGone tells of a plan that is gone, and of the record that was removed.
func (p plugin) consoleWhenGone(t *testing.T, plan *v1alpha1.RemediationPlan) {
	t.Helper()
	forgetAll(t)
	ops := console.Open(t, "--kubeconfig", p.kubeconfig)
	var results []wire.Result
	ops.Want(t, "/api/v1/remediation/history?namespace="+plan.Namespace, http.StatusOK, &results)
	if len(results) != 1 || results[0].Source != "evidence" || results[0].PlanID != string(plan.UID) || results[0].Status != "succeeded" {
		t.Errorf("the history is %+v", results)
	}
	var got wire.Evidence
	ops.Want(t, "/api/v1/remediation/history/"+string(plan.UID)+"/evidence", http.StatusOK, &got)
	if text := strings.Join(got.Problems, "\n"); got.Verified || !strings.Contains(text, "Gap ") {
		t.Errorf("the packet is verified %t with the problems %q", got.Verified, text)
	}
}
