// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

const loopback = "127.0.0.1"

// sidecar is the proxy of an injected pod, for which the test is the kubelet: it makes
// the files of the volume and fills in the variables.
type sidecar struct {
	pod           *corev1.Pod
	directory     string // in place of the one that is mounted
	admin, status int
	plane         string // host:port of the control plane
	generation    int
}

// newSidecar asks a control plane on a host of this machine.
func newSidecar(t *testing.T, host string) *sidecar {
	t.Helper()
	port := freeport.For(t)
	s := &sidecar{directory: t.TempDir(), admin: freeport.For(t), status: freeport.For(t), plane: net.JoinHostPort(host, strconv.Itoa(port))}
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u-1"}}
	var err error
	s.pod, err = inject.Pod(plain, inject.Config{ProxyImage: "none", Bootstrap: inject.BootstrapConfig{
		XDSHost: host, XDSPort: uint32(port), AdminPort: uint32(s.admin), StatusPort: uint32(s.status), //nolint:gosec // ports
	}}, inject.Explicit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files of the pod's volume, by name.
func (s *sidecar) files(t *testing.T, token string, bundle []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, source := range s.pod.Spec.Volumes[0].Projected.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			out[source.ServiceAccountToken.Path] = token
		case source.ConfigMap != nil:
			out[source.ConfigMap.Items[0].Path] = string(bundle)
		case source.DownwardAPI != nil:
			for _, item := range source.DownwardAPI.Items {
				name := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
				out[item.Path] = strings.ReplaceAll(s.pod.Annotations[name], inject.Directory, s.directory)
			}
		}
	}
	if len(out) != 4 {
		t.Fatalf("the volume has %d files", len(out))
	}
	return out
}

// project puts the files there as the kubelet does, by exchanging a link.
func (s *sidecar) project(t *testing.T, token string, bundle []byte) {
	t.Helper()
	s.generation++
	current := filepath.Join(s.directory, fmt.Sprintf("..%d", s.generation))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(current, 0o700))
	for name, content := range s.files(t, token, bundle) {
		check(os.WriteFile(filepath.Join(current, name), []byte(content), 0o600))
		if s.generation == 1 {
			check(os.Symlink(filepath.Join("..data", name), filepath.Join(s.directory, name)))
		}
	}
	next := filepath.Join(s.directory, "..data_tmp")
	check(os.Symlink(filepath.Base(current), next))
	check(os.Rename(next, filepath.Join(s.directory, "..data")))
}

// args are those of the container, with its variables.
func (s *sidecar) args(t *testing.T) []string {
	t.Helper()
	proxy := s.pod.Spec.InitContainers[0]
	values := map[string]string{"metadata.namespace": s.pod.Namespace, "metadata.name": s.pod.Name, "metadata.uid": string(s.pod.UID)}
	// A test does not wait ten seconds for numbers.
	pairs := []string{inject.Directory, s.directory, `"stats_flush_interval":"10s"`, `"stats_flush_interval":"0.2s"`}
	for _, variable := range proxy.Env {
		pairs = append(pairs, "$("+variable.Name+")", values[variable.ValueFrom.FieldRef.FieldPath])
	}
	replacer := strings.NewReplacer(pairs...)
	var out []string
	for _, arg := range proxy.Args {
		out = append(out, replacer.Replace(arg))
	}
	if strings.Contains(strings.Join(out, " "), "$(") {
		t.Fatalf("a variable is left in %q", out)
	}
	return out
}

// start starts the Envoy, which ends by itself when it is told to.
func (s *sidecar) start(t *testing.T) {
	t.Helper()
	var output bytes.Buffer
	process := child.Bind(exec.Command(envoy.Binary(t), s.args(t)...)) //nolint:gosec,noctx // a test's own binary, which the cleanup ends
	process.Stdout, process.Stderr = &output, &output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("the Envoy did not end by itself: %v", err)
		}
		if t.Failed() {
			t.Logf("the Envoy said:\n%s", output.String())
		}
	})
}
