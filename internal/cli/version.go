// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

type versionInfo struct {
	ClientVersion string          `json:"clientVersion"`
	GoVersion     string          `json:"goVersion"`
	Platform      string          `json:"platform"`
	Server        []serverVersion `json:"server,omitempty"`
}

// serverVersion is that of one Deployment of the installation.
type serverVersion struct {
	Component string `json:"component"`
	Namespace string `json:"namespace"`
	Version   string `json:"version"`
}

func versionCommand(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var output string
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin and of the installation",
		Long: `Print the version of the plugin and of each part of the installation, which the
Deployments carry as a label. A plugin of another version is told on standard
error. It needs the right to list Deployments; --client asks no cluster.`,
		Example: invocation.Examples(
			"# Print the versions of the plugin and of the installation", "%s version",
			"# Print the version of the plugin alone", "%s version --client"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
				return err
			}
			info := versionInfo{ClientVersion: a.Version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			var unread error
			if !clientOnly {
				info.Server, unread = a.serverVersions(cmd.Context())
			}
			if err := a.printVersions(output, info); err != nil {
				return err
			}
			if warning := versionSkew(info); warning != "" {
				fmt.Fprintln(a.ErrOut, "Warning:", warning)
			}
			return unread
		},
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print the version of the plugin alone.")
	return cmd
}

func (a *app) printVersions(output string, info versionInfo) error {
	if output != "" {
		return a.PrintReport(output, "VersionReport", info)
	}
	lines := []string{"Client Version: " + info.ClientVersion}
	for _, s := range info.Server {
		lines = append(lines, fmt.Sprintf("Server Version: %s (%s in %s)", s.Version, s.Component, s.Namespace))
	}
	return a.Print(strings.Join(lines, "\n"), "\n")
}

// serverVersions reads the labels of the installation's Deployments. Redis has a version
// of its own.
func (a *app) serverVersions(ctx context.Context) ([]serverVersion, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"})
	if err := c.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/name": "plumbline"}); err != nil {
		return nil, fmt.Errorf("reading the version of the installation: %w; --client prints that of the plugin alone", err)
	}
	var versions []serverVersion
	for i := range list.Items {
		labels := list.Items[i].Labels
		if component := labels["app.kubernetes.io/component"]; component != "redis" {
			versions = append(versions, serverVersion{component, list.Items[i].Namespace, labels["app.kubernetes.io/version"]})
		}
	}
	slices.SortFunc(versions, func(x, y serverVersion) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Component, y.Component))
	})
	if len(versions) == 0 {
		return nil, errors.New("reading the version of the installation: the cluster has no Deployment of Plumbline; --client prints that of the plugin alone")
	}
	return versions, nil
}

// versionSkew tells which parts are of another version than the plugin; empty without such a part, or if the plugin is of no release.
func versionSkew(info versionInfo) string {
	plugin := strings.TrimPrefix(info.ClientVersion, "v")
	if plugin == "" || plugin[0] < '0' || plugin[0] > '9' {
		return ""
	}
	var others []string
	for _, s := range info.Server {
		if strings.TrimPrefix(s.Version, "v") != plugin {
			others = append(others, s.Component+" "+s.Version)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("this plugin is of version %s, the installation is not (%s): use the plugin of the installation's version", info.ClientVersion, strings.Join(others, ", "))
}
