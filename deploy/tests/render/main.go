// Renders a Helm chart as `helm template` does, as far as the checks of deploy/ need it: the same template
// language (text/template) with the same functions (sprig), `include`, `required`, `tpl` and the YAML ones.
// Usage: render CHART RELEASE < VALUES. Writes the files' documents, each after a line `# Source: FILE`.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := render(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Values given win over the chart's, table by table.
func merged(base, over map[string]interface{}) map[string]interface{} {
	for key, value := range over {
		under, isTable := base[key].(map[string]interface{})
		table, both := value.(map[string]interface{})
		if isTable && both {
			base[key] = merged(under, table)
		} else {
			base[key] = value
		}
	}
	return base
}

func table(text []byte) (map[string]interface{}, error) {
	found := map[string]interface{}{}
	err := yaml.Unmarshal(text, &found)
	return found, err
}

func file(chart, name string) (map[string]interface{}, error) {
	text, err := os.ReadFile(filepath.Join(chart, name))
	if err != nil {
		return nil, err
	}
	return table(text)
}

func render(chart, release string) error {
	values, err := file(chart, "values.yaml")
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	given, err := table(text)
	if err != nil {
		return err
	}
	about, err := file(chart, "Chart.yaml")
	if err != nil {
		return err
	}
	title := map[string]interface{}{}
	for key, value := range about {
		title[strings.ToUpper(key[:1])+key[1:]] = value
	}
	data := map[string]interface{}{
		"Values":  merged(values, given),
		"Chart":   title,
		"Release": map[string]interface{}{"Name": release, "Namespace": "swirl", "Service": "Helm"},
		"Capabilities": map[string]interface{}{
			"KubeVersion": map[string]interface{}{"Version": "v1.30.0", "Major": "1", "Minor": "30"},
		},
	}
	// As Helm has it: what a value lacks is empty.
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, path := range files {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") || !strings.HasSuffix(name, ".yaml") && name != "NOTES.txt" {
			continue
		}
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, name, data); err != nil {
			return err
		}
		fmt.Printf("# Source: %s\n%s\n", name, strings.ReplaceAll(out.String(), "<no value>", ""))
	}
	return nil
}

func functions(all *template.Template) template.FuncMap {
	made := sprig.TxtFuncMap()
	delete(made, "env")
	delete(made, "expandenv")
	made["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	made["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	made["fromYaml"] = func(text string) (map[string]interface{}, error) {
		return table([]byte(text))
	}
	made["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	return made
}
