// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// binary is the assessor as a process of its own.
type binary struct {
	process         *exec.Cmd
	metrics, health string
	log             string // a file
}

// startBinary builds and starts the assessor, with more flags if need be.
func startBinary(tb testing.TB, flags ...string) *binary {
	tb.Helper()
	dir := tb.TempDir()
	program := filepath.Join(dir, "assessor")
	build := exec.Command("go", "build", "-o", program, filepath.Join(rendered.RepositoryDir(), "cmd", "assessor"))
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("building the assessor: %v\n%s", err, out)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig); err != nil {
		tb.Fatal(err)
	}
	p := &binary{metrics: "127.0.0.1:" + freePort(tb), health: "127.0.0.1:" + freePort(tb), log: filepath.Join(dir, "log")}
	log, err := os.Create(p.log)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	flags = append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--health-address=" + p.health, "--metrics-address=" + p.metrics}, flags...)
	p.process = exec.Command(program, flags...)
	p.process.Env = append(os.Environ(), "GOMEMLIMIT=270MiB")
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.stop)
	return p
}

func (p *binary) stop() {
	if p.process.ProcessState == nil {
		_ = p.process.Process.Kill() // it may have ended
		_ = p.process.Wait()         // "signal: killed" is what is wanted
	}
}

// freePort is the number of a port that nobody listens on, see [server.FreePort].
func freePort(tb testing.TB) string {
	tb.Helper()
	port, err := server.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return strconv.Itoa(port)
}

func writeKubeconfig(path string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Impersonate: assessorUser,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
}

// said is what the process wrote to its log.
func (p *binary) said() (string, error) {
	raw, err := os.ReadFile(p.log)
	return string(raw), err
}

func get(address, path string) (code int, body string, err error) {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, string(raw), err
}

// tells waits until the process is ready and one of its metrics has a value.
func (w *world) tells(p *binary, metric, value string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("it is ready and %s is %s", metric, value), func() error {
		code, body, err := get(p.health, "/readyz")
		if err != nil {
			return err
		}
		if code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		if _, body, err = get(p.metrics, "/metrics"); err != nil {
			return err
		}
		for line := range strings.Lines(body) {
			if got, ok := strings.CutPrefix(strings.TrimSpace(line), metric+" "); ok && got == value {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
}
