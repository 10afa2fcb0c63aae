// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// namespaceWith makes a namespace with a level of Pod Security.
func namespaceWith(t *testing.T, level string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: level + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
	}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	// No controller runs that would make it.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns.Name}}
	if err := admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// injected reads the golden file of a pod, with a bootstrap where the name of one is.
func injected(t *testing.T, file string) []byte {
	t.Helper()
	text := golden.Read(t, file)
	for _, path := range goldenFiles(t, "bootstrap") {
		var raw bytes.Buffer
		if err := json.Compact(&raw, []byte(golden.Read(t, path))); err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(raw.String())
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		text = strings.ReplaceAll(text, "<bootstrap "+name+">", string(quoted))
	}
	if strings.Contains(text, "<bootstrap") {
		t.Fatalf("%s names a bootstrap that there is not", file)
	}
	return []byte(text)
}

// goldenFiles are those of one directory.
func goldenFiles(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "testdata", directory, "*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("golden files of %s: %v (%v)", directory, files, err)
	}
	return files
}

// tried is a pod as the API server would store it, every field known to it.
func tried(t *testing.T, namespace, file string) (*corev1.Pod, error) {
	t.Helper()
	pod := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(injected(t, file), &pod.Object); err != nil {
		t.Fatal(err)
	}
	pod.SetNamespace(namespace)
	pod.SetOwnerReferences(nil) // whoever made it is not there
	if err := admin.Create(t.Context(), pod, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return nil, err
	}
	var stored corev1.Pod
	return &stored, runtime.DefaultUnstructuredConverter.FromUnstructured(pod.Object, &stored)
}

// TestTheAPIServerTakesEveryInjectedPod in the narrowest namespace that its mode has:
// Pod Security "restricted" without privilege, "privileged" with rules to set.
func TestTheAPIServerTakesEveryInjectedPod(t *testing.T) {
	restricted, privileged := namespaceWith(t, "restricted"), namespaceWith(t, "privileged")
	modes := map[inject.Mode]int{}
	for _, file := range goldenFiles(t, "injected") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			pod, err := tried(t, privileged, file)
			if err != nil {
				t.Fatal(err)
			}
			mode := inject.Mode(pod.Labels[inject.LabelProxy])
			modes[mode]++
			_, err = tried(t, restricted, file)
			switch mode {
			case inject.Explicit:
				if err != nil {
					t.Error(err)
				}
			case inject.Redirect:
				// That it is refused shows that the level is enforced at all.
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "NET_ADMIN") {
					t.Errorf("a namespace with Pod Security restricted says %v", err)
				}
			}
			asItComesAgain(t, pod)
			hasNoTokenForTheAPI(t, pod)
		})
	}
	if modes[inject.Explicit] == 0 || modes[inject.Redirect] == 0 {
		t.Errorf("pods of each mode: %v", modes)
	}
}

// asItComesAgain: with all the API server's defaults, as a webhook that is called a
// second time sees it.
func asItComesAgain(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	c := inject.Config{ProxyImage: "docker.io/example/next:1", RedirectImage: "docker.io/example/next:1"}
	if d := inject.Decide(pod, nil, c); d.Reason != inject.AlreadyInjected {
		t.Errorf("a second time: %+v", d)
	}
	again, err := inject.Pod(pod, c, inject.Explicit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pod, again); diff != "" {
		t.Errorf("a second injection (-want +got):\n%s", diff)
	}
}

// hasNoTokenForTheAPI of ours; the application has one.
func hasNoTokenForTheAPI(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	mounts := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, "kube-api-access-") })
	}
	if !mounts(pod.Spec.Containers[0]) {
		t.Error("the application has no token")
	}
	for _, c := range pod.Spec.InitContainers {
		if ours := c.Name == inject.ProxyContainer || c.Name == inject.RedirectContainer; ours == mounts(c) {
			t.Errorf("%s: a token for the API server: %t", c.Name, mounts(c))
		}
	}
}

// TestAGuaranteedPodStaysOne as the API server reckons it.
func TestAGuaranteedPodStaysOne(t *testing.T) {
	pod, err := tried(t, namespaceWith(t, "restricted"), filepath.Join(source, "testdata", "injected", "guaranteed.diff"))
	if err != nil {
		t.Fatal(err)
	}
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("its class is %s", pod.Status.QOSClass)
	}
}
