// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// installTestLabel is selected by the guard that the chart's test makes.
const installTestLabel = "plumbline.dev/install-test"

// installTestName is the Deployment's, which is never stored.
const installTestName = "plumbline-install-test"

// errInstallTest says that the installation does not stamp; the lines before it say what is missing.
var errInstallTest = errors.New("the installation does not work")

// installTest creates a Deployment as a dry run until both stamps arrive: that
// proves the way API server, Service, webhook, certificate, guards, and the
// policy that stamps the writer. It stores nothing.
func installTest(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("webhook install-test", flag.ContinueOnError)
	fs.SetOutput(stderr)
	namespace := fs.String("namespace", "default", "namespace of the dry run; a guard must select Deployments there by the label "+installTestLabel+"=true")
	timeout := fs.Duration("timeout", time.Minute, "how long to wait for the stamps")
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig file; empty means the pod's service account")
	if err := options.Parse(fs, args, os.LookupEnv); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the client configuration: %w", err)
	}
	config.QPS = -1 // One round a second needs no other limit.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	return proveStamps(ctx, client, *namespace, stdout)
}

// proveStamps polls once a second until all checks pass or ctx ends, and
// reports the last complete round.
func proveStamps(ctx context.Context, client kubernetes.Interface, namespace string, stdout io.Writer) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last []check
	for {
		checks := probe(ctx, client, namespace)
		if ctx.Err() == nil || last == nil {
			last = checks
		}
		if passed(last) || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for _, c := range last {
		if _, err := fmt.Fprintln(stdout, c); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if !passed(last) {
		return errInstallTest
	}
	return nil
}

func passed(checks []check) bool {
	return !slices.ContainsFunc(checks, func(c check) bool { return c.failure != "" })
}

// check is one line of the report.
type check struct {
	name    string
	failure string // empty: passed
}

func (c check) String() string {
	if c.failure == "" {
		return "ok: " + c.name
	}
	return "failed: " + c.name + ": " + c.failure
}

func probe(ctx context.Context, client kubernetes.Interface, namespace string) []check {
	stored := check{name: "dry-run create of a Deployment"}
	hash := check{name: "the spec hash is stamped"}
	writer := check{name: "the writer is stamped"}
	body, err := dryRunCreate(ctx, client, namespace)
	if err != nil {
		stored.failure = err.Error()
		return []check{stored}
	}
	var answer metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &answer); err != nil {
		stored.failure = err.Error()
		return []check{stored}
	}
	hash.failure = checkHash(answer.Annotations[v1alpha1.AnnotationSpecHash], body)
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		writer.failure = err.Error()
		return []check{stored, hash, writer}
	}
	want, got := me.Status.UserInfo.Username, answer.Annotations[v1alpha1.AnnotationWriter]
	if got != want {
		writer.failure = fmt.Sprintf("annotation %s is %q, want %q; look at the MutatingAdmissionPolicy plumbline-writer and its binding, or at --stamp-writer", v1alpha1.AnnotationWriter, got, want)
	}
	return []check{stored, hash, writer}
}

// dryRunCreate gives the answer as the server wrote it: our own types would
// drop the fields that they do not know, and the hash covers all of them.
func dryRunCreate(ctx context.Context, client kubernetes.Interface, namespace string) ([]byte, error) {
	body, err := json.Marshal(installTestDeployment())
	if err != nil {
		return nil, err
	}
	return client.AppsV1().RESTClient().Post().Namespace(namespace).Resource("deployments").
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body(body).Do(ctx).Raw()
}

func checkHash(got string, body []byte) string {
	if got == "" {
		return "annotation " + v1alpha1.AnnotationSpecHash + " is absent; look at the webhook's pods, its Service, the caBundle of the MutatingWebhookConfiguration plumbline and the SpecGuard"
	}
	want, err := canon.HashBody(body, canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		return err.Error()
	}
	if got != string(want) {
		return fmt.Sprintf("annotation %s is %q, the object's hash is %q; another webhook may change the object afterwards", v1alpha1.AnnotationSpecHash, got, want)
	}
	return ""
}

func installTestDeployment() *appsv1.Deployment {
	labels := map[string]string{installTestLabel: "true"}
	replicas := int32(0)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: installTestName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "none", Image: "registry.k8s.io/pause:3.10"}},
				},
			},
		},
	}
}
