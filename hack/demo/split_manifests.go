// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// splitManifest has two versions of a service and two clients of it. The label of the
// namespace gives pods a proxy; the versions need none. Redirect mode sets rules in
// the network of its pod, for which the namespace has to let it.
const splitManifest = `
apiVersion: v1
kind: Namespace
metadata:
  name: SPLIT
  labels: {plumbline.dev/demo: split, plumbline.dev/inject: enabled, pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: v1
kind: Service
metadata:
  name: pay
  namespace: SPLIT
  labels: {plumbline.dev/managed: "true"}
spec:
  selector: {app: pay, track: stable}
  ports: [{name: http, port: 80, targetPort: 8080}]
`

const versionManifest = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: pay-TRACK, namespace: SPLIT}
spec:
  replicas: 1
  selector: {matchLabels: {app: pay, track: TRACK}}
  template:
    metadata: {labels: {app: pay, track: TRACK, plumbline.dev/inject: disabled}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: app
        image: IMAGE
        env: [{name: SHOP_NAME, value: pay}, {name: SHOP_VERSION, value: TRACK}]
        ports: [{containerPort: 8080}]
        lifecycle: {preStop: {sleep: {seconds: 3}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
`

const buyerManifest = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: buyer-MODE, namespace: SPLIT}
spec:
  selector: {matchLabels: {app: buyer-MODE}}
  template:
    metadata:
      labels: {app: buyer-MODE, plumbline.dev/inject-mode: MODE}
      annotations: {plumbline.dev/local-ports: "8001=pay"}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: app
        image: IMAGE
        env:
        - {name: SHOP_VISITS, value: "ADDRESS"}
        - {name: SHOP_VISIT_RATE, value: "100"}
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
`

// splitReleaseManifest is what a team writes to divide the requests.
const splitReleaseManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ABRelease
metadata: {name: pay, namespace: SPLIT}
spec:
  serviceName: pay
  stable: stable
  variations:
  - {name: stable, workload: {kind: Deployment, name: pay-stable}}
  - {name: canary, workload: {kind: Deployment, name: pay-canary}}
  trafficSplit: {type: Percentage, percentages: {stable: 90, canary: 10}}
`

// buyers are the clients by the mode of their proxy, and what they call.
var buyers = []struct{ mode, address string }{
	{"redirect", "http://pay"},
	{"explicit", "http://127.0.0.1:8001"},
}

// versionsOfPay are the service and its two versions.
func versionsOfPay(image string) string {
	manifest := []string{splitManifest}
	for _, track := range []string{"stable", "canary"} {
		manifest = append(manifest, strings.ReplaceAll(versionManifest, "TRACK", track))
	}
	return inSplit(strings.Join(manifest, ""), image)
}

// buyersOfPay are its clients.
func buyersOfPay(image string) string {
	var manifest []string
	for _, buyer := range buyers {
		manifest = append(manifest, strings.NewReplacer("MODE", buyer.mode, "ADDRESS", buyer.address).Replace(buyerManifest))
	}
	return inSplit(strings.Join(manifest, ""), image)
}

func inSplit(manifest, image string) string {
	return strings.NewReplacer("IMAGE", image, "SPLIT", splitNamespace).Replace(manifest)
}
