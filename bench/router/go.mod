module fairlead.example/router

go 1.24
