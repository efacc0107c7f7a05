// Package manifests builds the kustomizations below examples/deploy as kubectl does
// and applies them.
package manifests

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the objects of the kustomization in a folder, in the order in which
// they can be made.
func Build(dir string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl's
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
		objects = append(objects, o)
	}
}

// Apply applies objects on the server's side, or only has it check them: what is in
// a namespace that is not there is refused then.
func Apply(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured, dryRun bool) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(found)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	options := metav1.ApplyOptions{FieldManager: "strictarp-e2e", Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		var to dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if o.GetNamespace() != "" {
			to = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if _, err := to.Apply(ctx, o.GetName(), o, options); err != nil {
			return fmt.Errorf("apply %s %s in %s: %w", o.GetKind(), o.GetName(), cmp.Or(o.GetNamespace(), "the cluster"), err)
		}
	}
	return nil
}
