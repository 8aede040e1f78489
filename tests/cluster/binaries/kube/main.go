// Command kube is the control plane and the node of a Kubernetes cluster in one program. It acts as
// the component that its own base name says, so that a link named kube-apiserver starts an API
// server; called as kube it takes the component as its first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// The programs' own mains register these: without them metrics of the client and of the version
	// are missing and --logging-format=json is refused.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	// The command sets up the signals itself; a context that already did would close a channel twice.
	"kubelet": func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := components[name]; !known && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	command, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kube: no component %q; one of kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
