// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const shopImage = "docker.io/plumbline/shop:test"

// shops is two services of which one asks the other by its DNS name.
const shops = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pay}
spec:
  selector: {matchLabels: {app: pay}}
  template:
    metadata: {labels: {app: pay}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: shop
        image: ` + shopImage + `
        env: [{name: SHOP_NAME, value: pay}, {name: SHOP_VERSION, value: CLUSTER}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {limits: {memory: 64Mi, cpu: 200m}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers:
      - name: shop
        image: ` + shopImage + `
        env: [{name: SHOP_NAME, value: cart}, {name: SHOP_VERSION, value: CLUSTER}, {name: SHOP_UPSTREAM, value: "http://pay.default.svc.cluster.local"}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: pay}
spec: {selector: {app: pay}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart}
spec: {type: NodePort, selector: {app: cart}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
`

// hook sends every new ConfigMap of namespace hooked to the shop, which does not
// speak TLS: the API server's complaint proves that it has reached the pod.
const hook = `
apiVersion: v1
kind: Namespace
metadata: {name: hooked, labels: {hooked: "yes"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.plumbline.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig: {service: {namespace: default, name: pay, path: /, port: 80}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {hooked: "yes"}}
`

// TestTwoClusters tells the whole life of two clusters on one machine.
func TestTwoClusters(t *testing.T) {
	p := newProgram(t)
	before := machineNow(t)
	names := []string{"one", "two"}
	upTogether(t, p, names)
	var footprints []footprint
	for _, name := range names {
		footprints = append(footprints, p.footprintOf(name))
	}
	deployShops(t, p, names)
	t.Run("pods answer by ClusterIP and NodePort from the host, and find each other by name", func(t *testing.T) {
		for _, name := range names {
			checkShops(t, p, name)
		}
	})
	t.Run("the API server reaches webhooks by the ClusterIP of their service", func(t *testing.T) {
		p.mustKubectl("one", hook, "apply", "-f", "-")
		eventually(t, "webhook called", func() error {
			output, err := p.kubectl("one", "", "create", "configmap", "c", "--namespace", "hooked", "--dry-run=server")
			if err == nil || !strings.Contains(output, "server gave HTTP response to HTTPS client") {
				return fmt.Errorf("want the complaint of an HTTPS client, got %w: %s", err, output)
			}
			return nil
		})
	})
	t.Run("the Redis image serves, as a user that is not root on a read-only root", func(t *testing.T) {
		checkRedis(t, p, "two")
	})
	t.Run("Helm speaks to the cluster", func(t *testing.T) {
		helm := exec.CommandContext(t.Context(), strings.TrimSpace(p.run("which", "helm")), "list", "--kubeconfig", p.record("two").Layout().Kubeconfig())
		if output, err := helm.CombinedOutput(); err != nil || !strings.HasPrefix(string(output), "NAME") {
			t.Errorf("helm list: %v: %s", err, output)
		}
	})
	t.Run("kubectl and the API server report the version they were built from", func(t *testing.T) {
		checkVersions(t, p, "two")
	})
	t.Run("the audit log of the cluster that has one names who wrote", func(t *testing.T) {
		data, err := os.ReadFile(p.record("one").Layout().AuditLog())
		if err != nil || !strings.Contains(string(data), `"username":"admin"`) {
			t.Errorf("audit log without the administrator (%v)", err)
		}
		if _, err := os.Stat(p.record("two").Layout().AuditLog()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cluster two has an audit log (%v)", err)
		}
	})
	t.Run("a second up leaves a healthy cluster alone", func(t *testing.T) {
		pid := p.record("one").Pid
		p.run("up", "--name", "one", "--audit")
		if got := p.record("one").Pid; got != pid {
			t.Errorf("first process %d became %d", pid, got)
		}
	})
	t.Run("a second up with other options is refused", func(t *testing.T) {
		_, errOut, err := p.try("up", "--name", "one", "--audit", "--apiserver-arg=--v=3")
		if err == nil || !strings.Contains(errOut, "--recreate") {
			t.Errorf("want a refusal that names --recreate, got %v: %s", err, errOut)
		}
	})
	t.Run("a command runs inside", func(t *testing.T) {
		if got := strings.TrimSpace(p.run("exec", "--name", "two", "--", "hostname")); got != "two-node1" {
			t.Errorf("host name %q, want two-node1", got)
		}
	})
	t.Run("a daemon that dies is noticed, and up repairs the cluster", func(t *testing.T) {
		repairKilledDaemon(t, p)
		footprints = append(footprints, p.footprintOf("one"))
	})
	t.Run("down leaves nothing", func(t *testing.T) {
		for _, name := range names {
			p.run("down", "--name", name)
			p.run("down", "--name", name) // again: no error
		}
		for _, had := range footprints {
			had.assertGone(t)
		}
		before.assertUnchanged(t)
		p.assertNoState()
	})
}

func upTogether(t *testing.T, p *program, names []string) {
	t.Helper()
	var both sync.WaitGroup
	for _, name := range names {
		both.Go(func() {
			arguments := []string{"up", "--name", name}
			if name == "one" {
				arguments = append(arguments, "--audit")
			}
			if _, errOut, err := p.try(arguments...); err != nil {
				t.Errorf("up %s: %v\n%s", name, err, errOut)
			}
		})
	}
	both.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if a, b := p.record(names[0]).Network, p.record(names[1]).Network; a == b {
		t.Fatalf("both clusters got network %v", a)
	}
}

// deployShops on all clusters, whose pods start side by side.
func deployShops(t *testing.T, p *program, names []string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "shop.tar")
	build := p.command(t.Context(), "image", "build", "--name", "shop", "--package", "./hack/images/shop", "--tag", shopImage, "--out", archive)
	build.Dir = filepath.Join("..", "..") // the shop belongs to the root module
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the shop: %v: %s", err, output)
	}
	for _, name := range names {
		p.run("load", "--name", name, archive)
		p.mustKubectl(name, strings.ReplaceAll(shops, "CLUSTER", name), "apply", "-f", "-")
	}
	for _, name := range names {
		p.mustKubectl(name, "", "rollout", "status", "deployment/pay", "deployment/cart", "--timeout=90s")
	}
}

type shopAnswer struct {
	Name, Version string
	Upstream      *shopAnswer
}

func checkShops(t *testing.T, p *program, name string) {
	t.Helper()
	want := shopAnswer{Name: "cart", Version: name, Upstream: &shopAnswer{Name: "pay", Version: name}}
	clusterIP := p.mustKubectl(name, "", "get", "service", "cart", "-o", "jsonpath={.spec.clusterIP}")
	node := p.record(name).Network.Node().Addr().String()
	for _, address := range []string{clusterIP, node + ":30080"} {
		eventually(t, "checkout at "+address, func() error {
			body, err := get("http://" + address + "/checkout")
			if err != nil {
				return err
			}
			var got shopAnswer
			decode(t, body, &got)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("answer (-want +got):\n%s", diff)
			}
			return nil
		})
	}
}

const redisPod = `
apiVersion: v1
kind: Pod
metadata: {name: redis, labels: {app: redis}}
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: redis
    image: docker.io/plumbline/redis:test
    readinessProbe: {exec: {command: [redis-cli, ping]}, periodSeconds: 1}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: redis}
spec: {selector: {app: redis}, ports: [{port: 6379}]}
`

func checkVersions(t *testing.T, p *program, name string) {
	t.Helper()
	var version struct{ ClientVersion, ServerVersion struct{ GitVersion string } }
	decode(t, p.mustKubectl(name, "", "version", "-o", "json"), &version)
	want := strings.Split(filepath.Base(filepath.Dir(p.record(name).Program("kubectl"))), "-")[1]
	if version.ClientVersion.GitVersion != want || version.ServerVersion.GitVersion != want {
		t.Errorf("versions %+v, want %s", version, want)
	}
}

func checkRedis(t *testing.T, p *program, name string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "redis.tar")
	p.run("image", "redis", "--tag", "docker.io/plumbline/redis:test", "--out", archive)
	p.run("load", "--name", name, archive)
	p.mustKubectl(name, redisPod, "apply", "-f", "-")
	p.mustKubectl(name, "", "wait", "--for=condition=Ready", "pod/redis", "--timeout=60s")
	address := p.mustKubectl(name, "", "get", "service", "redis", "-o", "jsonpath={.spec.clusterIP}") + ":6379"
	eventually(t, "redis answers", func() error {
		connection, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "PING\r\n"); err != nil {
			return err
		}
		answer, err := bufio.NewReader(connection).ReadString('\n')
		if err == nil && answer != "+PONG\r\n" {
			err = fmt.Errorf("answer %q", answer)
		}
		return err
	})
}

func get(url string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func repairKilledDaemon(t *testing.T, p *program) {
	broken, other := p.record("one"), p.record("two")
	if err := syscall.Kill(daemon(t, broken, "kube-scheduler"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "list shows it", func() error {
		if list := p.run("list"); !strings.Contains(list, "broken: kube-scheduler killed by killed") {
			return errors.New(list)
		}
		return nil
	})
	p.run("up", "--name", "one", "--audit")
	if list := p.run("list"); strings.Contains(list, "broken") {
		t.Errorf("after repair:\n%s", list)
	}
	if p.record("one").Pid == broken.Pid {
		t.Error("the broken cluster was kept")
	}
	if p.record("two").Pid != other.Pid {
		t.Error("the other cluster was touched")
	}
	checkShops(t, p, "two")
}

// TestInterruptedBringUp stops the launcher at several points, in both ways.
func TestInterruptedBringUp(t *testing.T) {
	p := newProgram(t)
	before := machineNow(t)
	for _, mark := range []string{"containerd listening", "API server ready", "node ready"} {
		t.Run("ctrl-C at "+mark+" leaves nothing", func(t *testing.T) {
			status, had := p.interruptAt(mark, syscall.SIGINT, "cut")
			if status != 130 {
				t.Errorf("exit status %d, want 130", status)
			}
			had.assertGone(t)
			p.assertNoState()
		})
	}
	t.Run("a killed launcher takes its cluster with it, and up starts afresh", func(t *testing.T) {
		_, had := p.interruptAt("API server ready", syscall.SIGKILL, "cut")
		eventually(t, "processes ended", func() error { return had.ended(t) })
		p.run("up", "--name", "cut", "--nodes", "0")
		p.mustKubectl("cut", "", "get", "namespace", "kube-system")
		p.run("down", "--name", "cut")
		had.assertCleaned(t)
		p.assertNoState()
	})
	t.Run("a cluster ends with its owner, and up starts afresh", func(t *testing.T) {
		owner := exec.Command("cat") // until its input ends
		input, err := owner.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		p.run("up", "--name", "owned", "--nodes", "0", "--owner", strconv.Itoa(owner.Process.Pid))
		had := p.footprintOf("owned")
		p.mustKubectl("owned", "", "get", "namespace", "kube-system")
		if err := errors.Join(input.Close(), owner.Wait()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "processes ended", func() error { return had.ended(t) })
		p.run("up", "--name", "owned", "--nodes", "0")
		p.mustKubectl("owned", "", "get", "namespace", "kube-system")
		p.run("down", "--name", "owned")
		had.assertCleaned(t)
		p.assertNoState()
	})
	t.Run("an owner that is no process is refused", func(t *testing.T) {
		for _, owner := range []string{"-1", "me"} {
			if _, errOut, err := p.try("up", "--name", "owned", "--owner", owner); err == nil || !strings.Contains(errOut, "want the number of a process") {
				t.Errorf("owner %s: %v: %s", owner, err, errOut)
			}
		}
	})
	before.assertUnchanged(t)
}

func TestFailureShowsTheLogOfWhatFailed(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	_, errOut, err := p.try("up", "--name", "bad", "--nodes", "0", "--apiserver-arg=--no-such-flag")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(errOut, "kube-apiserver exited with status 1") || !strings.Contains(errOut, "unknown flag: --no-such-flag") {
		t.Errorf("want the API server's complaint, got %v:\n%s", err, errOut)
	}
	if left := cgroupsOf(t, "plumbline-bad-*"); len(left) > 0 {
		t.Errorf("control groups left: %v", left)
	}
	p.run("down", "--name", "bad")
	p.assertNoState()
}

func TestUnknownClusterIsAnError(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, arguments := range [][]string{
		{"kubeconfig", "--name", "nobody"}, {"load", "--name", "nobody", "x.tar"}, {"exec", "--name", "nobody", "--", "true"},
	} {
		if _, errOut, err := p.try(arguments...); err == nil || !strings.Contains(errOut, "no such cluster: nobody") {
			t.Errorf("cluster %v: got %v: %s", arguments, err, errOut)
		}
	}
}
