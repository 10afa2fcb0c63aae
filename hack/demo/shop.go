// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// Names the story uses.
const (
	shopNamespace = "plumbline-demo-shop"
	ciNamespace   = "plumbline-demo-ci"
	// splitNamespace has what divides its traffic.
	splitNamespace = "plumbline-demo-split"
	ciAccount      = "deployer"
	botAccount     = "tuner"
	human          = "alice"
	otherHuman     = "bob"
	viewer         = "erin"
	environment    = "plumbline-demo"
)

// accessManifest holds the namespaces, the CI's service account and the rights
// of the people and of a bot. All have the built-in role edit, as tenants do, and
// one person has the role view.
const accessManifest = `
apiVersion: v1
kind: Namespace
metadata:
  name: SHOP
  labels: {plumbline.dev/demo: shop, pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: Namespace
metadata:
  name: CI
  labels: {plumbline.dev/demo: ci}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: CI}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: tuner, namespace: CI}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: SHOP}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
- {kind: ServiceAccount, name: deployer, namespace: CI}
- {kind: ServiceAccount, name: tuner, namespace: CI}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: SHOP}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: erin}
---
# The owner of a namespace lets the executor put its objects back.
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: plumbline-executor-targets, namespace: SHOP}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plumbline-executor-targets}
subjects:
- {kind: ServiceAccount, name: plumbline-executor, namespace: plumbline-system}
`

const systemNamespaceManifest = `
apiVersion: v1
kind: Namespace
metadata:
  name: plumbline-system
  labels: {plumbline.dev/demo: system, pod-security.kubernetes.io/enforce: restricted}
`

// guardManifest is all that a platform team writes.
const guardManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: Environment
metadata: {name: plumbline-demo}
spec:
  criticality: Production
  namespaceSelector: {matchLabels: {plumbline.dev/demo: shop}}
  componentCriticality:
  - {component: cart, criticality: 90}
  dependencies:
  - {component: web, dependsOn: [cart]}
---
apiVersion: plumbline.dev/v1alpha1
kind: SpecGuard
metadata: {name: shop, namespace: SHOP}
spec:
  resources:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: v1, kind: Pod}
  mode: Warn
  trustedWriters:
    serviceAccounts: [{namespace: CI, name: deployer}]
  expectedWriters:
  - name: autoscaler
    writers: {serviceAccounts: [{namespace: kube-system, name: horizontal-pod-autoscaler}]}
    paths: [/spec/replicas]
`

// shopManifest is what CI deploys: two services, one with a sidecar. REPLICAS is
// left out where an autoscaler has them: each release would set them back.
const shopManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app.kubernetes.io/name: NAME}}
spec:
  REPLICAS
  selector: {matchLabels: {app.kubernetes.io/name: NAME}}
  template:
    metadata: {labels: {app.kubernetes.io/name: NAME}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 2
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: app
        image: IMAGE
        env:
        - {name: SHOP_NAME, value: NAME}
        - {name: SHOP_VERSION, value: "VERSION"}
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      - name: audit
        image: IMAGE
        env:
        - {name: SHOP_NAME, value: NAME-audit}
        - {name: SHOP_ADDRESS, value: ":8081"}
        resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  selector: {app.kubernetes.io/name: NAME}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
`

// autoscaled is the service that the autoscaler scales.
const autoscaled = "cart"

const autoscalerManifest = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: cart}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  minReplicas: 1
  maxReplicas: 5
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
`

func named(manifest string) string {
	return strings.NewReplacer("SHOP_", "SHOP_", "SHOP", shopNamespace, "namespace: CI", "namespace: "+ciNamespace, "name: CI", "name: "+ciNamespace).Replace(manifest)
}

// releaseManifest renders what CI deploys in one version.
func releaseManifest(image, version string) string {
	var b strings.Builder
	for _, name := range []string{"web", "cart"} {
		replicas := "replicas: 1"
		if name == autoscaled {
			replicas = ""
		}
		b.WriteString(strings.NewReplacer("NAME-audit", name+"-audit", "SHOP_NAME", "SHOP_NAME", "NAME", name, "IMAGE", image, "VERSION", version, "REPLICAS", replicas).Replace(shopManifest))
	}
	return b.String()
}
