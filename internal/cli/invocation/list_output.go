// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ListOutput is how a command prints objects of ours: as a table of its own, or
// as kubectl get prints them.
type ListOutput struct {
	printFlags *genericclioptions.PrintFlags
	NoHeaders  bool
	// Watch is set by the flag of [AddWatchFlag], for commands that have the flag.
	Watch bool
}

// NewListOutput returns an output without flags; [ListOutput.AddFlags] adds them.
func NewListOutput() ListOutput {
	return ListOutput{printFlags: genericclioptions.NewPrintFlags("")}
}

// AddFlags adds -o and --no-headers, with the name of the objects in the usage.
func (o *ListOutput) AddFlags(cmd *cobra.Command, what string) {
	o.printFlags.AddFlags(cmd)
	formats := append(o.printFlags.AllowedFormats(), "wide")
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(formats, ", ") + "). All but wide print the " + what + " themselves."
	CompleteValues(cmd, "output", formats...)
	AddNoHeadersFlag(cmd, &o.NoHeaders)
}

// ListPrinter is the printer that the flags asked for: a table, perhaps a wide one, or a
// printer of objects.
type ListPrinter struct {
	Wide    bool
	Objects printers.ResourcePrinter
	name    bool // -o name, whose printer takes no lists
}

// Printer returns the printer that the flags ask for.
func (o *ListOutput) Printer(cmd *cobra.Command, scheme *runtime.Scheme) (*ListPrinter, error) {
	output := *o.printFlags.OutputFormat
	if err := CheckWatch(cmd, o.Watch, output); err != nil {
		return nil, err
	}
	template := o.printFlags.TemplatePrinterFlags.TemplateArgument
	if output == "wide" || (output == "" && (template == nil || *template == "")) {
		return &ListPrinter{Wide: output == "wide"}, nil
	}
	printer, err := o.printFlags.WithTypeSetter(scheme).ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, UsageErrorf(cmd, "unable to match a printer suitable for the output format %q, allowed formats are: %s,wide", output, strings.Join(o.printFlags.AllowedFormats(), ","))
	}
	if err != nil {
		return nil, err
	}
	return &ListPrinter{Objects: printer, name: output == "name"}, nil
}

// Print prints objects as kubectl get does: one named object as itself, anything else
// as a List.
func (p *ListPrinter) Print(out io.Writer, kind string, objects []client.Object, named bool) error {
	for _, object := range objects {
		object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	}
	switch {
	case p.name:
		for _, object := range objects {
			if err := p.Objects.PrintObj(object, out); err != nil {
				return err
			}
		}
		return nil
	case named && len(objects) == 1:
		return p.Objects.PrintObj(objects[0], out)
	}
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, object := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	return p.Objects.PrintObj(list, out)
}
