// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// answerPatience bounds one request to a cluster that may not exist.
	answerPatience = 10 * time.Second
	// demoLabel is on everything that the demo makes in a cluster, so that it can
	// tell its own from others'.
	demoLabel = "plumbline.dev/demo"
)

// clients are the ways in which the preflight asks a cluster.
type clients struct {
	typed    kubernetes.Interface
	metadata metadata.Interface
}

// connect reads the current kubeconfig as kubectl does.
func connect() (clients, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	raw, err := loader.RawConfig()
	if err != nil {
		return clients{}, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Without a context clientcmd would fall back to localhost or to a pod's own account.
	if raw.Contexts[raw.CurrentContext] == nil {
		return clients{}, "", errors.New("the kubeconfig has no current context")
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return clients{}, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Timeout = answerPatience
	config.QPS, config.Burst = 100, 200 // some eighty questions about rights
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, "", fmt.Errorf("making a client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return clients{}, "", fmt.Errorf("making a client: %w", err)
	}
	return clients{typed, meta}, fmt.Sprintf("context %s, %s", raw.CurrentContext, config.Host), nil
}

// preflight looks at cluster, registry and machine before anything is built.
func preflight(ctx context.Context, n *narrator, o options) error {
	f := facts{Architecture: runtime.GOARCH}
	if _, err := exec.LookPath("redis-server"); err != nil {
		f.MissingCommands = append(f.MissingCommands, "redis-server")
	}
	f.RegistryProblem = registryProblem(ctx, o)
	c, where, err := connect()
	if err == nil {
		n.progress("looking at the current cluster: %s", where)
		err = askCluster(ctx, c, &f)
	}
	if err != nil {
		f.ClusterProblem = err.Error()
	}
	if err := check(f); err != nil {
		return err
	}
	n.progress("the demo can run there")
	return nil
}

// registryProblem begins a push of one of the images and gives it up again.
func registryProblem(ctx context.Context, o options) string {
	output, err := exec.CommandContext(ctx, clusterTool, "image", "check-push", "--registry", o.registry, localRegistry+"/webhook:"+imageTag).CombinedOutput()
	if err == nil {
		return ""
	}
	if text := strings.TrimSpace(strings.TrimPrefix(string(output), "cluster: ")); text != "" {
		return text
	}
	return err.Error()
}

// askCluster fills in what the cluster says. An error means that it does not
// answer, or does not let this user ask.
func askCluster(ctx context.Context, c clients, f *facts) error {
	version, err := c.typed.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the version: %w", err)
	}
	f.Version = version.GitVersion
	if f.WriterPolicy, err = servesWriterPolicy(c); err != nil {
		return err
	}
	if f.Denied, err = denied(ctx, c.typed); err != nil {
		return err
	}
	if len(f.Denied) > 0 {
		// Who may not install may often not look either; the rights are what to say.
		f.Architectures = []string{f.Architecture}
		return nil
	}
	return inventory(ctx, c, f)
}

func servesWriterPolicy(c clients) (bool, error) {
	list, err := c.typed.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the admission kinds: %w", err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }), nil
}

// denied asks for each right, unless the user has them all.
func denied(ctx context.Context, client kubernetes.Interface) ([]right, error) {
	if all, err := allowed(ctx, client, everything); err != nil || all {
		return nil, err
	}
	needed := neededRights()
	answers := make([]bool, len(needed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i, r := range needed {
		group.Go(func() (err error) {
			answers[i], err = allowed(ctx, client, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var lacking []right
	for i, r := range needed {
		if !answers[i] {
			lacking = append(lacking, r)
		}
	}
	return lacking, nil
}

func allowed(ctx context.Context, client kubernetes.Interface, r right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether you may %s: %w", r, err)
	}
	return answer.Status.Allowed, nil
}

// inventory looks for nodes, and for what the demo must not touch.
func inventory(ctx context.Context, c clients, f *facts) error {
	nodes, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if !node.Spec.Unschedulable && node.Status.NodeInfo.OperatingSystem == "linux" {
			f.Architectures = append(f.Architectures, node.Status.NodeInfo.Architecture)
		}
	}
	f.Architectures = architectures(f.Architectures)
	if f.Release, err = findRelease(ctx, c.metadata); err != nil {
		return err
	}
	f.Namespaces = map[string]bool{}
	for _, name := range []string{systemNamespace, shopNamespace, ciNamespace, splitNamespace} {
		namespace, err := find(ctx, c.metadata, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, name)
		if err != nil {
			return err
		}
		if namespace != nil {
			f.Namespaces[name] = isDemo(namespace)
		}
	}
	f.ForeignKinds, err = foreignKinds(ctx, c.metadata)
	return err
}

// findRelease goes by the webhook configuration, which every installation has
// under the same name, however it was made.
func findRelease(ctx context.Context, client metadata.Interface) (*installation, error) {
	hook, err := find(ctx, client, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, "plumbline")
	if err != nil || hook == nil {
		return nil, err
	}
	return &installation{
		Name:      hook.Annotations["meta.helm.sh/release-name"],
		Namespace: hook.Annotations["meta.helm.sh/release-namespace"],
		Demo:      isDemo(hook),
	}, nil
}

func foreignKinds(ctx context.Context, client metadata.Interface) ([]string, error) {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := client.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing kinds: %w", err)
	}
	foreign := map[string]bool{}
	for i := range list.Items {
		if item := &list.Items[i]; strings.HasSuffix(item.Name, ".plumbline.dev") && !isDemo(item) {
			foreign[item.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(foreign)), nil
}

func find(ctx context.Context, client metadata.Interface, kind schema.GroupVersionResource, name string) (*metav1.PartialObjectMetadata, error) {
	found, err := client.Resource(kind).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %s %s: %w", kind.Resource, name, err)
	}
	return found, nil
}

func isDemo(o metav1.Object) bool {
	_, ours := o.GetLabels()[demoLabel]
	return ours
}
