// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

type versionInfo struct {
	ClientVersion string `json:"clientVersion"`
	GoVersion     string `json:"goVersion"`
	Platform      string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the plugin",
		Example: examples("# Print the version of the plugin", "%s version"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(cmd, output, "json", "yaml"); err != nil {
				return err
			}
			if output == "" {
				return a.print("Client Version: ", a.version, "\n")
			}
			return a.printStructured(output, versionInfo{
				ClientVersion: a.version,
				GoVersion:     runtime.Version(),
				Platform:      runtime.GOOS + "/" + runtime.GOARCH,
			})
		},
	}
	addOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}
