// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// epilogue says what to try next, what the demo has left and how that goes away.
func (n *narrator) epilogue(admin clusterAccess, o options) {
	n.heading("What to try next")
	if admin.Kubeconfig == "" {
		n.say("  export PATH=%s:$PATH", admin.Path)
	} else {
		n.say("  export KUBECONFIG=%s PATH=%s:$PATH", admin.Kubeconfig, admin.Path)
	}
	n.say("  kubectl get baselines -A")
	n.say("  kubectl plumbline accept deployment/cart -n %s --reason 'sale until Sunday'", shopNamespace)
	n.say("  kubectl plumbline history deployment/web -n %s", shopNamespace)
	n.say("  kubectl plumbline hash -f manifest.yaml")
	n.say("  kubectl edit abrelease/pay -n %s", splitNamespace)
	n.say("  kubectl set image deployment/web app=nginx -n %s --as %s", shopNamespace, human)
	if o.cluster == "local" {
		n.say("\nThe cluster keeps running; `make demo` again takes seconds, `make cluster-down`\nremoves it. This run took %.0f s.", secondsSince(n))
		return
	}
	n.heading("What is left in this cluster, and how to remove it")
	n.say("The release plumbline and its kinds, four namespaces, and the images in the\nregistry. Deleting the kinds deletes every guard and Baseline. To remove it all:\n")
	n.commands(cleanUp())
	n.say("\n`make demo` again with the same CLUSTER and REGISTRY goes on with what is there.\nThe images %s/plumbline/* stay in the registry.\nThis run took %.0f s.", o.registry, secondsSince(n))
}

// brokenOff says how to remove what a demo has left that did not get to its end.
func (n *narrator) brokenOff() {
	n.say("\nThe demo did not get to its end. Repeat the command, or remove what it has left\nin the cluster:\n")
	n.commands(cleanUp())
}

func (n *narrator) commands(commands []string) {
	for _, command := range commands {
		n.say("  %s", command)
	}
}

// cleanUp lists the commands that remove everything that the demo makes in a
// cluster, from wherever it was left. The kinds come last, since the release keeps
// them when it goes.
func cleanUp() []string {
	return []string{
		fmt.Sprintf("kubectl delete namespace %s %s %s --ignore-not-found", shopNamespace, ciNamespace, splitNamespace),
		fmt.Sprintf("helm uninstall plumbline --namespace %s --wait --ignore-not-found", systemNamespace),
		fmt.Sprintf("kubectl delete namespace %s --ignore-not-found", systemNamespace),
		"kubectl delete crd --selector " + demoLabel,
	}
}
