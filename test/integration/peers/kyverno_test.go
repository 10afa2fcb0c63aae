// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// kyvernoNamespace is the namespace of Kyverno's own objects.
const kyvernoNamespace = "kyverno"

// kyverno is the admission controller of Kyverno as a process.
type kyverno struct {
	cmd    *exec.Cmd
	log    string // a file
	exited chan error
}

// startKyverno installs the kinds of Kyverno, starts its admission controller out of
// the cluster, and waits until the controller is ready. KYVERNO names the folder of the
// build.
func startKyverno(b *testing.B, w *world) *kyverno {
	b.Helper()
	build := os.Getenv("KYVERNO")
	if build == "" {
		b.Fatal("KYVERNO is not set; it names the folder that hack/kyverno.sh prints (make bench-admission-peers sets it)")
	}
	if _, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(build, "crds")}, ErrorIfPathMissing: true}); err != nil {
		b.Fatalf("installing the kinds of Kyverno: %v", err)
	}
	createKyvernoObjects(b, w)
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = freeport.Claim(); err != nil {
			b.Fatal(err)
		}
	}
	k := &kyverno{log: filepath.Join(w.dir, "kyverno.log"), exited: make(chan error, 1)}
	k.start(b, filepath.Join(build, "kyverno"), kyvernoFlags(w.kubeconfig, ports[0], ports[1]))
	eventually(b, "Kyverno is ready", func() error { return k.ready(ports[0]) })
	return k
}

// createKyvernoObjects makes the namespace and the ConfigMaps that Kyverno reads at its
// start.
func createKyvernoObjects(b *testing.B, w *world) {
	b.Helper()
	if err := w.admin.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kyvernoNamespace}}); err != nil {
		b.Fatal(err)
	}
	// Values of Kyverno's chart that matter for a Deployment.
	for name, data := range map[string]map[string]string{
		"kyverno": {
			"enableDefaultRegistryMutation": "true", "defaultRegistry": "docker.io", "generateSuccessEvents": "false", "excludeGroups": "system:nodes",
			"resourceFilters": "[Event,*,*] [*/*,kube-system,*] [*/*,kube-public,*] [*/*,kube-node-lease,*] [Node,*,*] [ReplicaSet,*,*] [ReplicaSet/?*,*,*]",
			"webhooks":        `{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kyverno"]}]}}`,
		},
		"kyverno-metrics": {"bucketBoundaries": "0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 30"},
	} {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kyvernoNamespace, Name: name}, Data: data}
		if err := w.admin.Create(b.Context(), config); err != nil {
			b.Fatal(err)
		}
	}
}

// kyvernoFlags are the flags of Kyverno's chart, but for two: there is no reports
// controller, so no admission reports are made; and a process out of the cluster has an
// address.
func kyvernoFlags(kubeconfig string, port, metrics int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, fmt.Sprintf("--serverIP=127.0.0.1:%d", port), "--admissionReports=false",
		"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca", "--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair", "--tlsKeyAlgorithm=RSA",
		"--servicePort=443", fmt.Sprintf("--webhookServerPort=%d", port), "--webhookServerHost=127.0.0.1",
		"--resyncPeriod=15m", "--crdWatcher=false",
		"--disableMetrics=false", "--otelConfig=prometheus", fmt.Sprintf("--metricsPort=%d", metrics), "--metricsHost=127.0.0.1",
		"--controllerRuntimeMetricsAddress=0",
		"--autoUpdateWebhooks=true", "--excludeBootstrapResources=false", "--enableConfigMapCaching=true", "--enableDeferredLoading=true", "--dumpPayload=false",
		"--forceFailurePolicyIgnore=false", "--generateValidatingAdmissionPolicy=true", "--generateMutatingAdmissionPolicy=false",
		"--dumpPatches=false", "--maxAPICallResponseLength=2000000", "--apiCallTimeout=30s", "--maxGlobalContextEntries=0",
		"--loggingFormat=text", "--v=2", "--omitEvents=PolicyApplied,PolicySkipped", "--enablePolicyException=false",
		"--protectManagedResources=false", "--allowInsecureRegistry=false", "--registryCredentialHelpers=default,google,amazon,azure,github",
		"--enableReporting=validate,mutate,mutateExisting,imageVerify,generate",
	}
}

func (k *kyverno) start(b *testing.B, binary string, flags []string) {
	b.Helper()
	log, err := os.Create(k.log)
	if err != nil {
		b.Fatal(err)
	}
	k.cmd = child.Bind(exec.Command(binary, flags...))
	k.cmd.Env = append(os.Environ(),
		"KYVERNO_NAMESPACE="+kyvernoNamespace, "KYVERNO_POD_NAME=kyverno-0", "KYVERNO_DEPLOYMENT=kyverno-admission-controller",
		"KYVERNO_SERVICEACCOUNT_NAME=kyverno-admission-controller", "KYVERNO_ROLE_NAME=kyverno:admission-controller", "KYVERNO_SVC=kyverno-svc",
		"INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
		"GOMEMLIMIT=345MiB", // as Kyverno itself sets it: nine tenths of the limit of its chart
	)
	k.cmd.Stdout, k.cmd.Stderr = log, log
	// The child has a handle of its own.
	if err := errors.Join(k.cmd.Start(), log.Close()); err != nil {
		b.Fatalf("starting Kyverno: %v", err)
	}
	go func() { k.exited <- k.cmd.Wait() }()
	b.Cleanup(func() { k.stop(b) })
}

// stopTime is how long Kyverno may take to stop.
const stopTime = 20 * time.Second

func (k *kyverno) stop(b *testing.B) {
	b.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.Error(err)
	}
	select {
	case how := <-k.exited:
		b.Logf("Kyverno ended: %v", how) // It may end by the signal.
	case <-time.After(stopTime):
		b.Logf("waited %s until Kyverno ends; last seen: it said\n%s", stopTime, k.said())
		report(b, k.cmd.Process.Kill())
	}
}

// said is the end of the log of Kyverno.
func (k *kyverno) said() string {
	raw, err := os.ReadFile(k.log)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-8<<10):])
}

func (k *kyverno) ready(port int) error {
	select {
	case err := <-k.exited:
		k.exited <- err
		return fmt.Errorf("kyverno ended: %w\n%s", err, k.said())
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/health/readiness", port), http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // readiness on loopback
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, k.said())
	}
	defer func() { _ = response.Body.Close() }() // not read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readiness: %s\n%s", response.Status, k.said())
	}
	return nil
}

// createKyvernoPolicy makes the CEL policy that asks the same question as the guard: is
// the writer of a Deployment trusted?
func createKyvernoPolicy(b *testing.B, w *world, namespace string) {
	b.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy",
		"metadata": map[string]any{"name": "trusted-writers"},
		"spec": map[string]any{
			"validationActions": []any{"Warn"},
			"failurePolicy":     "Ignore",
			"evaluation":        map[string]any{"background": map[string]any{"enabled": false}},
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: namespace}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"deployments"},
				}},
			},
			"validations": []any{map[string]any{
				"expression": fmt.Sprintf("request.userInfo.username in [%q]", trusted),
				"message":    "this change is not by a trusted writer",
			}},
		},
	}}
	if err := w.admin.Create(b.Context(), policy); err != nil {
		b.Fatal(err)
	}
}
