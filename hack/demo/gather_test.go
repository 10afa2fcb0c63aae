// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeCluster answers as an API server of that version with those objects does.
// may decides what the user is allowed.
func fakeCluster(t *testing.T, may func(right) bool, nodes []runtime.Object, objects ...*metav1.PartialObjectMetadata) clients {
	t.Helper()
	typed := fake.NewClientset(nodes...)
	typed.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = may(right{a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace})
		return true, review, nil
	})
	discovery := typed.Discovery().(*fakediscovery.FakeDiscovery)
	discovery.FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
	discovery.Resources = []*metav1.APIResourceList{{
		GroupVersion: "admissionregistration.k8s.io/v1",
		APIResources: []metav1.APIResource{{Name: "validatingwebhookconfigurations"}, {Name: "mutatingadmissionpolicies"}},
	}}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var stored []runtime.Object
	for _, o := range objects {
		stored = append(stored, o)
	}
	return clients{typed, metadatafake.NewSimpleMetadataClient(scheme, stored...)}
}

func object(apiVersion, kind, name string, labels, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
	}
}

func node(name, architecture string, change ...func(*corev1.Node)) runtime.Object {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.Architecture, n.Status.NodeInfo.OperatingSystem = architecture, "linux"
	for _, c := range change {
		c(n)
	}
	return n
}

var ours = map[string]string{demoLabel: "release"}

func anything(right) bool { return true }

func TestAskCluster(t *testing.T) {
	const admission, extensions = "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1"
	amd64 := []runtime.Object{node("a", "amd64")}
	empty := func(change func(*facts)) facts {
		f := facts{Version: "v1.36.3", WriterPolicy: true, Architectures: []string{"amd64"}, Namespaces: map[string]bool{}}
		change(&f)
		return f
	}
	tests := map[string]struct {
		nodes   []runtime.Object
		objects []*metav1.PartialObjectMetadata
		want    facts
	}{
		"an empty cluster": {amd64, nil, empty(func(*facts) {})},
		"each architecture counts once, and only where pods can go": {
			[]runtime.Object{
				node("a", "arm64"), node("b", "amd64"), node("c", "arm64"),
				node("w", "s390x", func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" }),
				node("x", "ppc64le", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
			}, nil,
			empty(func(f *facts) { f.Architectures = []string{"amd64", "arm64"} }),
		},
		"a release of the demo, with everything that belongs to it": {
			amd64, []*metav1.PartialObjectMetadata{
				object(admission, "ValidatingWebhookConfiguration", "plumbline", ours, map[string]string{"meta.helm.sh/release-name": "plumbline", "meta.helm.sh/release-namespace": systemNamespace}),
				object("v1", "Namespace", systemNamespace, ours, nil),
				object(extensions, "CustomResourceDefinition", "specguards.plumbline.dev", ours, nil),
			},
			empty(func(f *facts) {
				f.Release, f.Namespaces = &installation{"plumbline", systemNamespace, true}, map[string]bool{systemNamespace: true}
			}),
		},
		"somebody's release, namespace and kinds": {
			amd64, []*metav1.PartialObjectMetadata{
				object(admission, "ValidatingWebhookConfiguration", "plumbline", nil, map[string]string{"meta.helm.sh/release-name": "guard", "meta.helm.sh/release-namespace": "security"}),
				object("v1", "Namespace", shopNamespace, nil, nil),
				object(extensions, "CustomResourceDefinition", "specguards.plumbline.dev", nil, nil),
				object(extensions, "CustomResourceDefinition", "widgets.example.com", nil, nil),
			},
			empty(func(f *facts) {
				f.Release, f.Namespaces = &installation{"guard", "security", false}, map[string]bool{shopNamespace: false}
				f.ForeignKinds = []string{"specguards.plumbline.dev"}
			}),
		},
		"a release that Helm does not know": {
			amd64, []*metav1.PartialObjectMetadata{object(admission, "ValidatingWebhookConfiguration", "plumbline", nil, nil)},
			empty(func(f *facts) { f.Release = &installation{} }),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got facts
			if err := askCluster(t.Context(), fakeCluster(t, anything, tc.nodes, tc.objects...), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(right{})); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskCluster_OfARelativelyOldOne(t *testing.T) {
	c := fakeCluster(t, anything, []runtime.Object{node("a", "amd64")})
	c.typed.Discovery().(*fakediscovery.FakeDiscovery).Resources[0].APIResources = []metav1.APIResource{{Name: "validatingadmissionpolicies"}}
	var got facts
	if err := askCluster(t.Context(), c, &got); err != nil || got.WriterPolicy {
		t.Errorf("writer policy %v (%v), want false", got.WriterPolicy, err)
	}
}

func TestAskCluster_AsksForEachRightOfWhoHasNotAll(t *testing.T) {
	tests := map[string]struct {
		may  func(right) bool
		want []string
	}{
		"who may do everything is asked once": {func(r right) bool { return r == everything }, nil},
		"who may do each thing may go on":     {func(r right) bool { return r != everything }, nil},
		"who may not impersonate is told so":  {func(r right) bool { return r != everything && r.verb != "impersonate" }, []string{"impersonate users"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var f facts
			if err := askCluster(t.Context(), fakeCluster(t, tc.may, []runtime.Object{node("a", "amd64")}), &f); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range f.Denied {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("denied (-want +got):\n%s", diff)
			}
		})
	}
}

// A cluster that fails in the middle is not one that lacks nothing.
func TestAskCluster_PassesFailuresOn(t *testing.T) {
	for _, resource := range []string{"selfsubjectaccessreviews", "nodes"} {
		c := fakeCluster(t, anything, nil)
		c.typed.(*fake.Clientset).PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("etcd is away")
		})
		if err := askCluster(t.Context(), c, &facts{}); err == nil || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("%s: got %v", resource, err)
		}
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "namespaces", "customresourcedefinitions"} {
		c := fakeCluster(t, anything, nil)
		c.metadata.(*metadatafake.FakeMetadataClient).PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("etcd is away")
		})
		if err := askCluster(t.Context(), c, &facts{}); err == nil || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("%s: got %v", resource, err)
		}
	}
}

func TestConnect_WantsAContext(t *testing.T) {
	const server = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443'}}]\ncontexts: [{name: x, context: {cluster: c}}]\n"
	tests := map[string]struct{ content, want string }{
		"no file":               {"", "no current context"},
		"no current context":    {server, "no current context"},
		"a context that is not": {server + "current-context: other\n", "no current context"},
		"not YAML":              {"{", "reading the kubeconfig"},
		"a context":             {server + "current-context: x\n", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if tc.content != "" {
				if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("KUBECONFIG", path)
			_, where, err := connect()
			if tc.want == "" {
				if err != nil || where != "context x, https://192.0.2.1:6443" {
					t.Errorf("connect: %q, %v", where, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("connect: %v, want %q", err, tc.want)
			}
		})
	}
}

// The list of rights is written by hand; the chart is what counts.
func TestInstalled_CoversEveryKindOfTheChart(t *testing.T) {
	file, err := os.Open("../../test/chart/testdata/golden/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := 0
	for reader := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var o metav1.PartialObjectMetadata
		if err := reader.Decode(&o); err != nil {
			break // the end; that something was read is checked below
		}
		if o.Kind == "" || o.Annotations["helm.sh/hook"] == "test" {
			continue
		}
		seen++
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil {
			t.Fatal(err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(o.Kind))
		if _, known := installed[[2]string{gv.Group, plural.Resource}]; !known {
			t.Errorf("the chart creates %s, for which the preflight asks no right: add it to installed", plural.GroupResource())
		}
	}
	if seen < 30 {
		t.Errorf("only %d objects were read from the rendered chart", seen)
	}
}

func TestPulled_IsDecidedByTheKubelet(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such host"}}
	}
	tests := map[string]struct {
		states []corev1.ContainerState
		done   bool
		reason string
	}{
		"not scheduled yet":              {nil, false, ""},
		"being pulled":                   {[]corev1.ContainerState{waiting("ContainerCreating")}, false, ""},
		"the pull failed":                {[]corev1.ContainerState{waiting("ErrImagePull")}, true, "no such host"},
		"the pull failed a while ago":    {[]corev1.ContainerState{waiting("ImagePullBackOff")}, true, "no such host"},
		"it runs":                        {[]corev1.ContainerState{{Running: &corev1.ContainerStateRunning{}}}, true, ""},
		"it ran and ended: it was there": {[]corev1.ContainerState{{Terminated: &corev1.ContainerStateTerminated{}}}, true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			for _, state := range tc.states {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{State: state})
			}
			done, reason, _ := pulled(&pod)
			if done != tc.done || reason != tc.reason {
				t.Errorf("pulled = %v, %q; want %v, %q", done, reason, tc.done, tc.reason)
			}
		})
	}
}

func TestRegistryProblem_IsTheToolsOwnWords(t *testing.T) {
	t.Chdir(t.TempDir())
	tool := func(script string) {
		t.Helper()
		if err := os.MkdirAll("bin", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(clusterTool, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := options{registry: "registry.example.com/me"}
	tool(`test "$*" = "image check-push --registry registry.example.com/me docker.io/plumbline/webhook:dev"`)
	if got := registryProblem(context.Background(), o); got != "" {
		t.Errorf("problem %q", got)
	}
	tool("echo 'cluster: asking to push x: denied' >&2; exit 1")
	if got := registryProblem(context.Background(), o); got != "asking to push x: denied" {
		t.Errorf("problem %q", got)
	}
}
