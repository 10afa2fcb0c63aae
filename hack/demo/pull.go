// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// pullPatience covers the pull of a few MiB through a slow line.
const pullPatience = 2 * time.Minute

const pullManifest = `
apiVersion: v1
kind: Namespace
metadata:
  name: CI
  labels: {plumbline.dev/demo: ci}
---
apiVersion: v1
kind: Pod
metadata: {name: pull, namespace: CI}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: shop
    image: IMAGE
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`

// pullError says that the cluster does not get the images.
type pullError struct{ image, reason string }

func (e *pullError) Error() string {
	return fmt.Sprintf("the cluster cannot pull %s: %s\n"+
		"  A node must reach the registry under the very name given as REGISTRY; \"localhost\" is the node itself there. %s says how to set that up.",
		e.image, e.reason, guide)
}

// tryPull runs one small pod. Without it a registry that only this machine can
// reach would show after three minutes, as a time-out of Helm.
func tryPull(ctx context.Context, n *narrator, admin clusterAccess, images imageSet) error {
	n.progress("trying whether the cluster can pull them")
	if _, err := admin.Kubectl(ctx, "delete", "pod", "pull", "-n", ciNamespace, "--ignore-not-found", "--now"); err != nil {
		return err
	}
	manifest := strings.ReplaceAll(named(pullManifest), "IMAGE", images.shop())
	if err := admin.Apply(ctx, manifest); err != nil {
		return err
	}
	var refused *pullError
	err := harness.Eventually(ctx, "a pod with "+images.shop(), pullPatience, func(ctx context.Context) (bool, string) {
		var pod corev1.Pod
		if err := admin.Read(ctx, &pod, ciNamespace, "pull"); err != nil {
			return false, err.Error()
		}
		done, reason, saw := pulled(&pod)
		if reason != "" {
			refused = &pullError{images.shop(), reason}
		}
		return done, saw
	})
	if err != nil {
		return err
	}
	if refused != nil {
		// Nothing is to stay behind in a cluster that cannot run the demo.
		_, err := admin.Kubectl(ctx, "delete", "namespace", ciNamespace, "--ignore-not-found")
		return errors.Join(refused, err)
	}
	_, err = admin.Kubectl(ctx, "delete", "pod", "pull", "-n", ciNamespace, "--now")
	return err
}

// pulled says whether the question is decided, with the kubelet's reason if the
// image did not come, and with what there was to see.
func pulled(pod *corev1.Pod) (done bool, reason, saw string) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return false, "", string(pod.Status.Phase)
	}
	status := pod.Status.ContainerStatuses[0]
	waiting := status.State.Waiting
	if waiting == nil { // it runs, or has run
		return true, "", ""
	}
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable":
		return true, waiting.Message, ""
	default:
		return false, "", waiting.Reason + " " + waiting.Message
	}
}
