package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// StepVerbs are the methods that stepCatalog has of its own, by its source: reflection sees
// the embedded catalog's too.
func StepVerbs() map[string]bool {
	out := map[string]bool{}
	for _, file := range []string{"verbs.go", "catalogstep.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			panic(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "stepCatalog" {
				out[fn.Name.Name] = true
			}
		}
	}
	return out
}
