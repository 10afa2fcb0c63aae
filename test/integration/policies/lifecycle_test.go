// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// release is Helm and a client on an API server that nothing else uses.
type release struct {
	helm   *rendered.Client
	config *rest.Config
	kube   client.Client
}

func newRelease(t *testing.T) *release {
	t.Helper()
	server, err := apiserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(server.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	own := *helm
	own.Kubeconfig = kubeconfig
	return &release{helm: &own, config: server.Config, kube: kube}
}

func (r *release) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.helm.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *release) get(t *testing.T, o client.Object, name string) {
	t.Helper()
	if err := r.kube.Get(t.Context(), types.NamespacedName{Namespace: rendered.Namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
}

// TestALife installs, upgrades and uninstalls as a user would. Pods do not run
// here; what they write is written by the test in their name.
func TestALife(t *testing.T) {
	rotation.Share(t, 3)
	r := newRelease(t)
	before := inventory(t.Context(), t, r.config)

	out := r.run(t, "install", rendered.Release, rendered.ChartDir(), "--create-namespace", "--set", "crds.keep=false")
	if !strings.Contains(out, "Writers are stamped inside the API server") {
		t.Errorf("the notes do not say that the policy stamps writers:\n%s", out)
	}
	installed := inventory(t.Context(), t, r.config)
	secret, lease := &corev1.Secret{}, &coordinationv1.Lease{}
	r.get(t, secret, "plumbline-redis")
	password := string(secret.Data["password"])
	if len(password) != 40 || !strings.Contains(string(secret.Data["users.acl"]), "user plumbline on #") {
		t.Errorf("the Redis Secret holds a password of %d characters and the ACL %q", len(password), secret.Data["users.acl"])
	}
	authority := selfSigned(t)
	r.actAsThePods(t, authority)
	digests := &corev1.Secret{}
	r.get(t, digests, "plumbline-assessor")
	digestKey := string(digests.Data["digest.key"])

	for range 2 {
		out := r.run(t, "upgrade", rendered.Release, rendered.ChartDir(), "--set", "crds.keep=false", "--set", "webhook.replicas=3", "--set", "guard.stampedGroups={ops}")
		if strings.Contains(out, "until there is a guard") || !strings.Contains(out, "Check the installation") {
			t.Errorf("the notes of an upgrade do not know whether there are guards, and say:\n%s", out)
		}
	}
	r.get(t, secret, "plumbline-redis")
	if got := string(secret.Data["password"]); got != password {
		t.Error("an upgrade changed the Redis password")
	}
	r.get(t, digests, "plumbline-assessor")
	if got := string(digests.Data["digest.key"]); got != digestKey || len(got) != 40 {
		t.Errorf("an upgrade changed the digest key, or it is short: %d bytes", len(got))
	}
	tls := &corev1.Secret{}
	r.get(t, tls, "plumbline-webhook-tls")
	if diff := cmp.Diff(map[string][]byte{"ca.crt": []byte("authority")}, tls.Data); diff != "" {
		t.Errorf("an upgrade touched the certificates (-want +got):\n%s", diff)
	}
	r.get(t, lease, "plumbline-assessor")
	if got := ptr.Deref(lease.Spec.HolderIdentity, ""); got != "assessor-0" {
		t.Errorf("an upgrade took the lease from its holder: %q", got)
	}
	for kind, bundle := range r.caBundles(t) {
		if string(bundle) != authority {
			t.Errorf("an upgrade took the caBundle of the %s webhook: %q", kind, bundle)
		}
	}
	if diff := cmp.Diff(installed, inventory(t.Context(), t, r.config)); diff != "" {
		t.Errorf("an upgrade left other objects than the installation (-want +got):\n%s", diff)
	}

	r.run(t, "uninstall", rendered.Release, "--wait")
	// A kind goes only after its objects, so the last of it takes a moment.
	poll.Until(t, patience, "uninstall leaves no object (-before +after)", func() error {
		after := slices.DeleteFunc(inventory(t.Context(), t, r.config), func(id string) bool {
			return id == "v1 Namespace "+rendered.Namespace // helm does not remove what --create-namespace made
		})
		if diff := cmp.Diff(before, after); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	// Creating works at once; the policy's stamp ends when the API server has
	// noticed, after about a second.
	poll.Until(t, patience, "no policy stamps after uninstall", func() error {
		d := deployment("after-uninstall")
		d.Namespace = "default"
		if err := r.kube.Create(t.Context(), d, client.DryRunAll); err != nil {
			t.Fatalf("creating after uninstall: %v", err)
		}
		if got := stampOf(d); got != (stamp{}) {
			return fmt.Errorf("the stamp is %+v", got)
		}
		return nil
	})
}

func TestUninstallKeepsTheKindsUnlessToldOtherwise(t *testing.T) {
	rotation.Share(t, 3)
	r := newRelease(t)
	r.run(t, "install", rendered.Release, rendered.ChartDir(), "--create-namespace")
	r.run(t, "uninstall", rendered.Release)
	var crds []string
	for _, id := range inventory(t.Context(), t, r.config) {
		if strings.Contains(id, " CustomResourceDefinition ") {
			crds = append(crds, id)
		}
	}
	files, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 || len(crds) != len(files) {
		t.Errorf("of %d kinds are left after uninstall: %v (%v)", len(files), crds, err)
	}
	r.run(t, "install", rendered.Release, rendered.ChartDir(), "--set", "redis.enabled=false")
}

// actAsThePods writes what the webhook and the assessor write at run time, as
// their service accounts and with the rights that the chart gives them.
func (r *release) actAsThePods(t *testing.T, authority string) {
	t.Helper()
	webhook, assess := r.as(t, "plumbline-webhook"), r.as(t, "plumbline-assessor")
	secret := &corev1.Secret{}
	secret.Name, secret.Namespace = "plumbline-webhook-tls", rendered.Namespace
	if err := webhook.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"ca.crt":"YXV0aG9yaXR5"}}`))); err != nil {
		t.Fatalf("writing certificates as the webhook: %v", err)
	}
	lease := &coordinationv1.Lease{}
	lease.Name, lease.Namespace = "plumbline-assessor", rendered.Namespace
	if err := assess.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"assessor-0"}}`))); err != nil {
		t.Fatalf("taking the lease as the assessor: %v", err)
	}
	bundle := fmt.Appendf(nil, `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":%q}]`, encode(authority))
	for _, o := range []client.Object{&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}} {
		o.SetName("plumbline")
		if err := webhook.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, bundle)); err != nil {
			t.Fatalf("writing caBundle as the webhook: %v", err)
		}
	}
}

func (r *release) caBundles(t *testing.T) map[string][]byte {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	for _, o := range []client.Object{mutating, validating} {
		if err := r.kube.Get(t.Context(), types.NamespacedName{Name: "plumbline"}, o); err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{"mutating": mutating.Webhooks[0].ClientConfig.CABundle, "validating": validating.Webhooks[0].ClientConfig.CABundle}
}

// as acts as a service account of the release.
func (r *release) as(t *testing.T, serviceAccount string) client.Client {
	t.Helper()
	c, err := apiserver.As(r.config, "system:serviceaccount:"+rendered.Namespace+":"+serviceAccount)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inventory lists every object of the API server but those that it makes and
// refreshes by itself, and Helm's records of releases.
func inventory(ctx context.Context, t *testing.T, config *rest.Config) []string {
	t.Helper()
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	objects := dynamic.NewForConfigOrDie(config)
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" || resource.Kind == "APIService" {
				continue
			}
			ids = append(ids, listObjects(ctx, t, objects, list.GroupVersion, resource.Name)...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func listObjects(ctx context.Context, t *testing.T, objects dynamic.Interface, groupVersion, resource string) []string {
	t.Helper()
	found, err := objects.Resource(mustGroupVersion(t, groupVersion).WithResource(resource)).List(ctx, listEverything)
	if apierrors.IsNotFound(err) {
		return nil // the kind went since it was discovered
	}
	if err != nil {
		t.Fatalf("listing %s: %v", resource, err)
	}
	var ids []string
	for _, o := range found.Items {
		if ignored(&o) {
			continue
		}
		ids = append(ids, strings.TrimSpace(o.GetAPIVersion()+" "+o.GetKind()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")))
	}
	return ids
}

func ignored(o *unstructured.Unstructured) bool {
	return o.GetLabels()["owner"] == "helm" || (o.GetNamespace() == "default" && o.GetName() == "kubernetes") || (o.GetKind() == "Lease" && strings.HasPrefix(o.GetName(), "apiserver-")) ||
		o.GetKind() == "ComponentStatus" || o.GetKind() == "IPAddress" || o.GetDeletionTimestamp() != nil
}
